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

/**
 * The times of a step, and the session that wrote it. For a step that a fork shares, that session
 * is an ancestor (decision F2).
 */
export interface StepTimes extends VersionTimes {
  readonly owner: SessionId;
}

/** The sets of a session at a basis. */
export interface FoundSets {
  readonly sets: SessionSets;
  /** The last step that the sets include. */
  readonly seq: number;
  /** Number of index ids in the snapshots. */
  readonly indexedAtSnapshot: number;
}

/** Number of steps per request. While a request is running, earlier steps are processed. */
const AT_ONCE = 1_000;
/** Maximum concurrent requests. The node runs few queries at a time. */
const REQUESTS_AT_ONCE = 3;

/**
 * Minimum number of steps whose times are read from the log. Times of fewer steps are looked up one
 * by one.
 */
const LOOKED_UP = 16;

/** A range of steps. Steps up to `paged` may come from pages. Default: the last step. */
export interface PagedRange extends Required<StepRange> {
  readonly paged?: number;
}

const bySeq = (a: { readonly seq: number }, b: { readonly seq: number }): number => a.seq - b.seq;
const isOpenEnded = ({ last }: LineageSegment): boolean => last === Number.POSITIVE_INFINITY;

function requireDense(session: SessionId, steps: readonly Step[], first: number): void {
  for (const [i, step] of steps.entries()) {
    if (step.seq !== first + i) {
      throw new StoreError(
        'missing-part',
        `session ${session} has no step ${first + i} in the database, yet it has step ${step.seq}`,
      );
    }
  }
}

/**
 * Rejects missing inherited steps. Otherwise a fork without steps of its own would silently end
 * earlier.
 */
function requireInherited(session: SessionId, steps: readonly Step[], inherited: number): void {
  const last = steps.at(-1)?.seq ?? 0;
  if (last < inherited) {
    throw new StoreError(
      'missing-part',
      `session ${session} shares ${inherited} steps with its parent, yet the database holds only ${last} of them`,
    );
  }
}

/**
 * Reads the steps of sessions at one basis, in order and without gaps. A fork's inherited steps
 * carry the fork's own id (decision F2).
 *
 * @throws {StoreError} `missing-part` if a step or the text of a message is absent; `corrupt-part`
 *   if a text does not match its hash
 */
export class StepReader {
  readonly #db: DbSnapshot;
  readonly #texts: TextReader;
  readonly #calls: KnownCalls;
  readonly #pages: PageReader;
  /**
   * All steps of each session that was read in full, from individual parts and not from pages. Only
   * filled if the database snapshot caches documents.
   */
  readonly #whole = new Map<SessionId, readonly Step[]>();

  constructor(
    db: DbSnapshot,
    texts: TextReader,
    { calls, pages }: { readonly calls: KnownCalls; readonly pages: PageReader },
  ) {
    this.#db = db;
    this.#pages = pages;
    this.#texts = texts;
    this.#calls = calls;
  }

  /** Returns the steps of a lineage, all or a range, each from its own part. */
  async steps(
    { session, segments }: Lineage,
    { first: from = 1, last: upto = Number.POSITIVE_INFINITY }: StepRange = {},
  ): Promise<readonly Step[]> {
    const wanted = segments.filter(({ first, last }) => last >= from && first <= upto);
    const parts = await Promise.all(
      wanted.map(({ session: owner, first, last }) =>
        partsAtSteps(this.#db, {
          kind: 'steps',
          session: owner,
          first: Math.max(first, from),
          last: Math.min(last, upto),
        }),
      ),
    );
    const steps = await this.#restore(session, parts.flat());
    requireDense(session, steps, from);
    const inherited = wanted.filter((segment) => !isOpenEnded(segment)).map(({ last }) => Math.min(last, upto));
    if (inherited.length > 0) requireInherited(session, steps, Math.max(...inherited));
    if (this.#db.memory !== undefined && from === 1 && upto === Number.POSITIVE_INFINITY)
      this.#whole.set(session, steps);
    return steps;
  }

  /**
   * Returns the steps of a range by id, because a range query scans every step of the session.
   * Steps up to `paged` come from existing pages, read by `later` at this basis or a later one.
   * Ends at the last step that the database has.
   */
  async along(
    lineage: Lineage,
    { first, last, paged = last }: PagedRange,
    later: PageReader = this.#pages,
  ): Promise<readonly Step[]> {
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

  /** Returns the parts of the steps of a range, from pages and individually, in no order. */
  async #parts(
    lineage: Lineage,
    { first, last, paged }: Required<PagedRange>,
    later: PageReader,
  ): Promise<readonly StoredDocument[]> {
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
    const more =
      missing.length === 0 ? [] : (await readParts(this.#db, [...stepIds(lineage, missing).keys()])).values();
    return [...found.flatMap(({ steps }) => steps), ...others.values(), ...more];
  }

  /** Returns one step of a session. Undefined if it is not written. */
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

  /** Returns the given steps that the database holds. */
  async existing(lineage: Lineage, seqs: readonly number[]): Promise<ReadonlySet<number>> {
    const ids = stepIds(lineage, seqs);
    const found = new Set<string>(await existingIds(this.#db, [...ids.keys()]));
    // Only steps before the first one with a current id can have former ids.
    const earliest = Math.min(...[...ids].flatMap(([id, seq]) => (found.has(id) ? [seq] : [])));
    const former = await formerParts(
      this.#db,
      [...ids].flatMap(([id, seq]) => (seq < earliest ? [id] : [])),
    );
    return new Set([...ids].flatMap(([id, seq]) => (found.has(id) || former.has(id) ? [seq] : [])));
  }

  /** Returns the times of some steps. Unknown steps are absent. */
  async times(lineage: Lineage, seqs: readonly number[]): Promise<ReadonlyMap<number, StepTimes>> {
    const ids = stepIds(lineage, seqs);
    const found = await this.#writeTimes([...ids.keys()]);
    const missing = [...ids.keys()].filter((id) => !found.has(id));
    const former = await readTimes(this.#db, [...(await formerParts(this.#db, missing)).keys()].map(formerId));
    return new Map(
      [...ids].flatMap(([id, seq]) => {
        const times = found.get(id) ?? former.get(formerId(id));
        return times === undefined
          ? []
          : [[seq, { ...times, owner: ownerOf(lineage, seq) ?? lineage.session }] as const];
      }),
    );
  }

  /**
   * Returns the times of step parts. A part is written once, and a look-up covers only one part.
   * For many parts that were written close together, it reads the transaction log from the
   * transaction of the first part. If the log disagrees with a look-up of the first or last part,
   * it looks up each part.
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

  /**
   * Returns the sets of a session from the snapshots and the steps after the last one (decision
   * G3). `stepsFrom` reads those steps.
   */
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

  /**
   * Returns the snapshots of a session: its own, and those of its ancestors before the fork points.
   */
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

/**
 * Returns the part ids of some steps, each with its step number. Steps outside every segment are
 * absent.
 */
function stepIds(lineage: Lineage, seqs: readonly number[]): ReadonlyMap<PartId, number> {
  return new Map(
    seqs.flatMap((seq) => {
      const owner = ownerOf(lineage, seq);
      return owner === undefined ? [] : [[stepId(owner, seq), seq] as const];
    }),
  );
}
