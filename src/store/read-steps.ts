import { type ObjectId, type SessionId, sessionObjectId } from '../objects/ids.js';
import { EMPTY_SETS, type SessionSets, SetsFold } from '../objects/sets.js';
import type { Step } from '../objects/step.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import { snapshotParts, stepParts } from './queries.js';
import { readTexts } from './read-texts.js';
import { fromSnapshotPart, fromStepPart, messagePartHash, type SetsSnapshot } from './step-part.js';
import type { TextCache } from './text-cache.js';

const bySeq = (a: { readonly seq: number }, b: { readonly seq: number }): number => a.seq - b.seq;

async function restoreSteps(db: DbSnapshot, parts: readonly StoredDocument[], cache: TextCache): Promise<readonly Step[]> {
  const hashes = parts.map(messagePartHash).filter((hash) => hash !== undefined);
  const texts = hashes.length === 0 ? undefined : await readTexts(db, hashes, cache);
  const steps = parts.map((part) => {
    const hash = messagePartHash(part);
    return fromStepPart(part, hash === undefined ? undefined : texts?.get(hash));
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

/** The steps of a session from one on, at a basis, in order, none missing. */
export async function readSteps(db: DbSnapshot, session: SessionId, cache: TextCache, from = 1): Promise<readonly Step[]> {
  const steps = await restoreSteps(db, await stepParts(db, sessionObjectId(session), from), cache);
  requireDense(session, steps, from);
  return steps;
}

/** The sets of a session at a basis: the snapshots and the steps since the last one (decision G3). */
export async function readSets(
  db: DbSnapshot,
  session: SessionId,
  cache: TextCache,
): Promise<{ readonly sets: SessionSets; readonly seq: number; readonly indexedAtSnapshot: number }> {
  const id = sessionObjectId(session);
  const snapshots: readonly SetsSnapshot[] = (await snapshotParts(db, id)).map(fromSnapshotPart).sort(bySeq);
  const last = snapshots.at(-1);
  const index: readonly ObjectId[] = snapshots.flatMap(({ indexed }) => indexed);
  const fold = new SetsFold(last === undefined ? EMPTY_SETS : { index, active: last.active, pinned: last.pinned });
  const after = (last?.seq ?? 0) + 1;
  const steps = await restoreSteps(db, await stepParts(db, id, after), cache);
  requireDense(session, steps, after);
  for (const step of steps) fold.apply(step.changes);
  return { sets: fold.sets(), seq: steps.at(-1)?.seq ?? last?.seq ?? 0, indexedAtSnapshot: index.length };
}
