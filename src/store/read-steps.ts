import type { PartId, SessionId } from '../objects/ids.js';
import { foldSets, type SessionSets } from '../objects/sets.js';
import type { Step } from '../objects/step.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { entityHash } from '../xtdb/tx-log.js';
import { StoreError } from './errors.js';
import { forkPointOf, type Lineage, type LineageSegment, lineageFrom, ownerOf, type StepRange } from './lineage.js';
import { LOGGED_A_STEP } from './logged-writes.js';
import { formerId, formerParts, readParts } from './part-id.js';
import { existingIds, partsAtSteps, readTimes, snapshotParts, type VersionTimes } from './queries.js';
import type { PageReader } from './read-pages.js';
import { type KnownCalls, pagesWithin, seqsOf } from './step-page.js';
import { fromSnapshotPart, fromStepPart, messagePartHash, type SetsSnapshot, stepId } from './step-part.js';
import type { TextReader } from './texts.js';

/** The times of a step, and the session that wrote it: another one where a fork shares it (decision F2). */
export interface StepTimes extends VersionTimes {
  readonly owner: SessionId;
}

/** The sets of a session at a basis. */
export interface FoundSets {
  readonly sets: SessionSets;
  /** The last step that they include. */
  readonly seq: number;
  /** How many ids of the index the snapshots hold. */
  readonly indexedAtSnapshot: number;
}

/** Steps that are asked for together: while they are on their way, others are read. */
const AT_ONCE = 1_000;
/** How many such requests are on their way; the node runs few queries at a time. */
const REQUESTS_AT_ONCE = 3;

/** With fewer steps than this their times are looked up one by one. */
const LOOKED_UP = 16;

/** The steps of a range; up to `paged`, the last one if left out, the database may hold them in pages too. */
export interface PagedRange extends Required<StepRange> {
  readonly paged?: number;
}

const bySeq = (a: { readonly seq: number }, b: { readonly seq: number }): number => a.seq - b.seq;
const isOpenEnded = ({ last }: LineageSegment): boolean => last === Number.POSITIVE_INFINITY;

function requireDense(session: SessionId, steps: readonly Step[], first: number): void {
  for (const [i, step] of steps.entries()) {
    if (step.seq !== first + i) {
      throw new StoreError('missing-part', `session ${session} has no step ${first + i} in the database, yet it has step ${step.seq}`);
    }
  }
}

/** Inherited steps must all be there: a fork without one step of its own would otherwise silently end earlier. */
function requireInherited(session: SessionId, steps: readonly Step[], inherited: number): void {
  const last = steps.at(-1)?.seq ?? 0;
  if (last < inherited) {
    throw new StoreError(
      'missing-part',
      `session ${session} shares ${inherited} steps with the one it was forked from, yet the database holds them only up to ${last}`,
    );
  }
}

/**
 * Reads the steps of sessions at one basis, in order and none missing. A fork's inherited steps carry the fork's own id (decision F2).
 *
 * @throws {StoreError} `missing-part` – a step or the text of a message is not there; `corrupt-part` – a text is not what it is called by
 */
export class StepReader {
  readonly #db: DbSnapshot;
  readonly #texts: TextReader;
  readonly #calls: KnownCalls;
  readonly #pages: PageReader;
  /** All steps of sessions that were read here, each as it lies by itself; kept by a reader of a database that remembers, where they are always the same. */
  readonly #whole = new Map<SessionId, readonly Step[]>();

  constructor(db: DbSnapshot, texts: TextReader, { calls, pages }: { readonly calls: KnownCalls; readonly pages: PageReader }) {
    this.#db = db;
    this.#pages = pages;
    this.#texts = texts;
    this.#calls = calls;
  }

  /** The steps of a lineage, all or those of a range, each as it lies by itself. */
  async steps(
    { session, segments }: Lineage,
    { first: from = 1, last: upto = Number.POSITIVE_INFINITY }: StepRange = {},
  ): Promise<readonly Step[]> {
    const wanted = segments.filter(({ first, last }) => last >= from && first <= upto);
    const parts = await Promise.all(
      wanted.map(({ session: owner, first, last }) =>
        partsAtSteps(this.#db, { kind: 'steps', session: owner, first: Math.max(first, from), last: Math.min(last, upto) }),
      ),
    );
    const steps = await this.#restore(session, parts.flat());
    requireDense(session, steps, from);
    const inherited = wanted.filter((segment) => !isOpenEnded(segment)).map(({ last }) => Math.min(last, upto));
    if (inherited.length > 0) requireInherited(session, steps, Math.max(...inherited));
    if (this.#db.memory !== undefined && from === 1 && upto === Number.POSITIVE_INFINITY) this.#whole.set(session, steps);
    return steps;
  }

  /**
   * The steps of a range by their ids: a query for a range looks at every step of the session, however few are asked for. Those up to `paged` come from pages where
   * these are there, as `later` has them, which is this basis or a later one. Ends where the database holds no more.
   */
  async along(lineage: Lineage, { first, last, paged = last }: PagedRange, later: PageReader = this.#pages): Promise<readonly Step[]> {
    const whole = this.#whole.get(lineage.session);
    if (whole !== undefined) return whole.slice(first - 1, last);
    const steps: Step[] = [];
    for (let from = first; from <= last; ) {
      const ranges: Required<StepRange>[] = [];
      while (ranges.length < REQUESTS_AT_ONCE && from <= last) {
        const range = { first: from, last: Math.min(last, Math.ceil(from / AT_ONCE) * AT_ONCE) };
        ranges.push(range);
        from = range.last + 1;
      }
      const parts = await Promise.all(ranges.map((range) => this.#parts(lineage, { ...range, paged }, later)));
      for (const step of await this.#restore(lineage.session, parts.flat())) steps.push(step);
      if (ranges.some((range, i) => (parts[i]?.length ?? 0) <= range.last - range.first)) break;
    }
    requireDense(lineage.session, steps, first);
    return steps;
  }

  /** The parts of the steps of a range, from pages and by themselves, in no order. */
  async #parts(lineage: Lineage, { first, last, paged }: Required<PagedRange>, later: PageReader): Promise<readonly StoredDocument[]> {
    const pages = lineage.segments.flatMap((segment) => pagesWithin(segment, { first, last: Math.min(last, paged) }));
    const isPaged = (seq: number): boolean => pages.some((page) => page.first <= seq && seq <= page.last);
    const alone = seqsOf({ first, last }).filter((seq) => !isPaged(seq));
    const [found, others] = await Promise.all([
      pages.length === 0 ? [] : later.read(pages),
      readParts(this.#db, [...stepIds(lineage, alone).keys()]),
    ]);
    for (const { calls } of found) this.#calls.learn(calls);
    const there = new Set(found.map(({ range }) => range.last));
    const missing = pages.filter((page) => !there.has(page.last)).flatMap(seqsOf);
    const more = missing.length === 0 ? [] : (await readParts(this.#db, [...stepIds(lineage, missing).keys()])).values();
    return [...found.flatMap(({ steps }) => steps), ...others.values(), ...more];
  }

  /** One step of a session; undefined when it is not written. */
  async step(session: SessionId, seq: number): Promise<Step | undefined> {
    const own = await this.#part(session, seq);
    if (own !== undefined) return (await this.#restore(session, [own]))[0];
    const parent = await forkPointOf(this.#db, session);
    if (parent === undefined || seq > parent.seq) return undefined;
    const owner = ownerOf(await lineageFrom(this.#db, session, parent), seq);
    const shared = owner === undefined ? undefined : await this.#part(owner, seq);
    return shared === undefined ? undefined : (await this.#restore(session, [shared]))[0];
  }

  async #part(session: SessionId, seq: number): Promise<StoredDocument | undefined> {
    const id = stepId(session, seq);
    return (await readParts(this.#db, [id])).get(id);
  }

  /** Which of some steps the database holds. */
  async existing(lineage: Lineage, seqs: readonly number[]): Promise<ReadonlySet<number>> {
    const ids = stepIds(lineage, seqs);
    const found = new Set<string>(await existingIds(this.#db, [...ids.keys()]));
    // What comes after a step that is there under its id of today has no former one.
    const earliest = Math.min(...[...ids].flatMap(([id, seq]) => (found.has(id) ? [seq] : [])));
    const former = await formerParts(
      this.#db,
      [...ids].flatMap(([id, seq]) => (seq < earliest ? [id] : [])),
    );
    return new Set([...ids].flatMap(([id, seq]) => (found.has(id) || former.has(id) ? [seq] : [])));
  }

  /** The times of some steps; unknown ones are absent. */
  async times(lineage: Lineage, seqs: readonly number[]): Promise<ReadonlyMap<number, StepTimes>> {
    const ids = stepIds(lineage, seqs);
    const found = await this.#writeTimes([...ids.keys()]);
    const missing = [...ids.keys()].filter((id) => !found.has(id));
    const former = await readTimes(this.#db, [...(await formerParts(this.#db, missing)).keys()].map(formerId));
    return new Map(
      [...ids].flatMap(([id, seq]) => {
        const times = found.get(id) ?? former.get(formerId(id));
        return times === undefined ? [] : [[seq, { ...times, owner: ownerOf(lineage, seq) ?? lineage.session }] as const];
      }),
    );
  }

  /**
   * The times of steps' parts, each of which is written once. A look-up tells those of one part: where there are many of them close together, the log of transactions
   * from the first one on is read instead, unless it does not say the same of the first and the last one as a look-up does.
   */
  async #writeTimes(ids: readonly PartId[]): Promise<ReadonlyMap<string, VersionTimes>> {
    const latest = this.#db.basis.txId;
    if (ids.length < LOOKED_UP || latest === undefined) return readTimes(this.#db, ids);
    const [first = '', last = ''] = [ids.at(0), ids.at(-1)];
    const ends = await readTimes(this.#db, [first, last]);
    const known = [...ends.values()];
    const from = Math.min(...known.map(({ txId }) => txId));
    if (known.length < 2 || latest - from > ids.length * LOGGED_A_STEP) return readTimes(this.#db, ids);
    const writes = await this.#db.log.writesAfter(from - 1);
    const isSame = [...ends].every(([id, { txId }]) => writes?.get(entityHash(id))?.txId === txId);
    if (writes === undefined || !isSame) return readTimes(this.#db, ids);
    const found = ids.flatMap((id) => {
      const times = writes.get(entityHash(id));
      if (times === undefined || times.txId > latest) return [];
      const { validTime, txTime, txId } = times;
      return [[id, { validTime, txTime, txId }] as const];
    });
    return new Map(found);
  }

  /** The sets of a session: the snapshots and the steps since the last one (decision G3), which `stepsFrom` reads. */
  async sets(lineage: Lineage, stepsFrom: (first: number) => Promise<readonly Step[]>): Promise<FoundSets> {
    const snapshots = await this.#snapshots(lineage);
    const last = snapshots.at(-1);
    const index = snapshots.flatMap(({ indexed }) => indexed);
    const steps = await stepsFrom((last?.seq ?? 0) + 1);
    const sets = foldSets(
      { index, active: last?.active ?? [], pinned: last?.pinned ?? [] },
      steps.map(({ changes }) => changes),
    );
    return { sets, seq: steps.at(-1)?.seq ?? last?.seq ?? 0, indexedAtSnapshot: index.length };
  }

  /** The snapshots that a session's sets build on: its own and those that its ancestors made before it left them. */
  async #snapshots({ segments }: Lineage): Promise<readonly SetsSnapshot[]> {
    const found = segments.map(async ({ session, first, last }) => {
      const all = (await snapshotParts(this.#db, session)).map(fromSnapshotPart);
      return all.filter(({ seq }) => seq >= first && seq <= last);
    });
    return (await Promise.all(found)).flat().sort(bySeq);
  }

  async #restore(session: SessionId, parts: readonly StoredDocument[]): Promise<readonly Step[]> {
    const texts = await this.#texts.many(parts.map(messagePartHash).filter((hash) => hash !== undefined));
    const steps = parts.map((part) => {
      const hash = messagePartHash(part);
      return { ...fromStepPart(part, hash === undefined ? undefined : texts.get(hash)), session };
    });
    return steps.sort(bySeq);
  }
}

/** The ids of the parts of some steps, each with its step; steps that no segment holds are absent. */
function stepIds(lineage: Lineage, seqs: readonly number[]): ReadonlyMap<PartId, number> {
  return new Map(
    seqs.flatMap((seq) => {
      const owner = ownerOf(lineage, seq);
      return owner === undefined ? [] : [[stepId(owner, seq), seq] as const];
    }),
  );
}
