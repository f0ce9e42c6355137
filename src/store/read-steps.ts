import { type ObjectId, type SessionId, sessionObjectId } from '../objects/ids.js';
import { EMPTY_SETS, type SessionSets, SetsFold } from '../objects/sets.js';
import type { Step } from '../objects/step.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import type { ForkPoint } from './head.js';
import { forkPointOf, lineage, type StepRange, type Stretch } from './lineage.js';
import { snapshotParts, stepParts } from './queries.js';
import { readTexts } from './read-texts.js';
import { fromSnapshotPart, fromStepPart, messagePartHash, type SetsSnapshot, stepId } from './step-part.js';
import type { TextCache } from './text-cache.js';

const bySeq = (a: { readonly seq: number }, b: { readonly seq: number }): number => a.seq - b.seq;
const isOpenEnded = ({ last }: Stretch): boolean => last === Number.POSITIVE_INFINITY;

/** Reads step parts back as steps of a session: a fork's inherited steps carry the fork's own id (decision F2). */
async function restoreSteps(
  db: DbSnapshot,
  session: SessionId,
  parts: readonly StoredDocument[],
  cache: TextCache,
): Promise<readonly Step[]> {
  const hashes = parts.map(messagePartHash).filter((hash) => hash !== undefined);
  const texts = hashes.length === 0 ? undefined : await readTexts(db, hashes, cache);
  const steps = parts.map((part) => {
    const hash = messagePartHash(part);
    return { ...fromStepPart(part, hash === undefined ? undefined : texts?.get(hash)), session };
  });
  return steps.sort(bySeq);
}

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

async function stepsOf(
  db: DbSnapshot,
  session: SessionId,
  stretches: readonly Stretch[],
  cache: TextCache,
  from: number,
  upto = Number.POSITIVE_INFINITY,
): Promise<readonly Step[]> {
  const wanted = stretches.filter(({ first, last }) => last >= from && first <= upto);
  const parts = await Promise.all(
    wanted.map((stretch) => {
      const last = Math.min(stretch.last, upto);
      return stepParts(db, sessionObjectId(stretch.session), Math.max(stretch.first, from), Number.isFinite(last) ? last : undefined);
    }),
  );
  const steps = await restoreSteps(db, session, parts.flat(), cache);
  requireDense(session, steps, from);
  const inherited = wanted.filter((stretch) => !isOpenEnded(stretch)).map(({ last }) => Math.min(last, upto));
  if (inherited.length > 0) requireInherited(session, steps, Math.max(...inherited));
  return steps;
}

/** The steps of a session at a basis, all or those of a range, in order, none missing; for a fork those that it shares with its parent and its own (decision F2). */
export async function readSteps(
  db: DbSnapshot,
  session: SessionId,
  cache: TextCache,
  parent: ForkPoint | undefined,
  { first = 1, last }: StepRange = {},
): Promise<readonly Step[]> {
  return stepsOf(db, session, await lineage(db, session, parent), cache, first, last);
}

/** Steps a page: while one is on its way, another is read. */
const PAGE = 500;
/** Of them on their way at once; the node runs few queries at a time. */
const PAGES_AT_ONCE = 3;

/**
 * The steps of a range along a lineage that is known, called by their ids: a query for a range looks at every step of the session, however few are
 * asked for. Ends where the database holds no more.
 */
export async function readStepsAlong(
  db: DbSnapshot,
  session: SessionId,
  stretches: readonly Stretch[],
  cache: TextCache,
  { first, last }: Required<StepRange>,
): Promise<readonly Step[]> {
  const holder = (seq: number): SessionId | undefined => stretches.find((stretch) => stretch.first <= seq && seq <= stretch.last)?.session;
  const read = async (from: number): Promise<readonly Step[]> => {
    const seqs = Array.from({ length: Math.max(0, Math.min(PAGE, last - from + 1)) }, (_, i) => from + i);
    const ids = seqs.flatMap((seq) => {
      const owner = holder(seq);
      return owner === undefined ? [] : [stepId(owner, seq)];
    });
    const parts = ids.length === 0 ? [] : [...(await db.entities(ids)).values()];
    return restoreSteps(db, session, parts, cache);
  };
  const steps: Step[] = [];
  for (let from = first; from <= last; from += PAGE * PAGES_AT_ONCE) {
    const pages = await Promise.all(Array.from({ length: PAGES_AT_ONCE }, (_, i) => read(from + i * PAGE)));
    for (const step of pages.flat()) steps.push(step);
    if (pages.some((page) => page.length < PAGE)) break;
  }
  requireDense(session, steps, first);
  return steps;
}

/** One step of a session; undefined when it is not written. */
export async function readStep(db: DbSnapshot, session: SessionId, seq: number, cache: TextCache): Promise<Step | undefined> {
  const own = await db.entity(stepId(session, seq));
  if (own !== undefined) return (await restoreSteps(db, session, [own], cache))[0];
  const parent = await forkPointOf(db, session);
  if (parent === undefined || seq > parent.seq) return undefined;
  const holder = (await lineage(db, session, parent)).find(({ first, last }) => first <= seq && seq <= last);
  const shared = holder === undefined ? undefined : await db.entity(stepId(holder.session, seq));
  return shared === undefined ? undefined : (await restoreSteps(db, session, [shared], cache))[0];
}

/** The snapshots that a session's sets build on: its own and those that its ancestors made before it left them. */
async function snapshotsOf(db: DbSnapshot, stretches: readonly Stretch[]): Promise<readonly SetsSnapshot[]> {
  const of = async ({ session, first, last }: Stretch): Promise<readonly SetsSnapshot[]> => {
    const all = (await snapshotParts(db, sessionObjectId(session))).map(fromSnapshotPart);
    return all.filter(({ seq }) => seq >= first && seq <= last);
  };
  return (await Promise.all(stretches.map(of))).flat().sort(bySeq);
}

/** The sets of a session at a basis: the snapshots and the steps since the last one (decision G3). */
export async function readSets(
  db: DbSnapshot,
  session: SessionId,
  cache: TextCache,
  parent: ForkPoint | undefined,
): Promise<{ readonly sets: SessionSets; readonly seq: number; readonly indexedAtSnapshot: number }> {
  const stretches = await lineage(db, session, parent);
  const snapshots = await snapshotsOf(db, stretches);
  const last = snapshots.at(-1);
  const index: readonly ObjectId[] = snapshots.flatMap(({ indexed }) => indexed);
  const fold = new SetsFold(last === undefined ? EMPTY_SETS : { index, active: last.active, pinned: last.pinned });
  const steps = await stepsOf(db, session, stretches, cache, (last?.seq ?? 0) + 1);
  for (const step of steps) fold.apply(step.changes);
  return { sets: fold.sets(), seq: steps.at(-1)?.seq ?? last?.seq ?? 0, indexedAtSnapshot: index.length };
}
