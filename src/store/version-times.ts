import pLimit from 'p-limit';
import type { SessionId } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import type { ForkPoint } from './head.js';
import { lineage } from './lineage.js';
import { stepId } from './step-part.js';

/** When a version became true, as far as is known, and when the database learned it [decision F7]. */
export interface VersionTimes {
  readonly validTime: Date;
  readonly txTime: Date;
  readonly txId: number;
}

/** The times of a step, and the session that wrote it. */
export interface StepTimes extends VersionTimes {
  readonly holder: SessionId;
}

/** Look-ups under way at once: each is one seek. */
const AT_ONCE = 8;

/** The times of the current versions under many ids. */
export async function readTimes(db: DbSnapshot, ids: readonly string[]): Promise<ReadonlyMap<string, VersionTimes>> {
  const limit = pLimit(AT_ONCE);
  const found = await Promise.all(ids.map((id) => limit(async () => ({ id, times: await db.entityTx(id) }))));
  return new Map(
    found.flatMap(({ id, times }) => {
      if (times === undefined) return [];
      const { validTime, txTime, txId } = times;
      return [[id, { validTime, txTime, txId }] as const];
    }),
  );
}

/** The times of some steps of a session, those that a fork shares with its ancestors included. */
export async function readStepTimes(
  db: DbSnapshot,
  session: SessionId,
  seqs: readonly number[],
  parent: ForkPoint | undefined,
): Promise<ReadonlyMap<number, StepTimes>> {
  const stretches = await lineage(db, session, parent);
  const holders = new Map(seqs.map((seq) => [seq, stretches.find(({ first, last }) => first <= seq && seq <= last)?.session ?? session]));
  const ids = new Map([...holders].map(([seq, holder]) => [seq, stepId(holder, seq)]));
  const times = await readTimes(db, [...ids.values()]);
  return new Map(
    [...holders].flatMap(([seq, holder]) => {
      const found = times.get(ids.get(seq) ?? '');
      return found === undefined ? [] : [[seq, { ...found, holder }] as const];
    }),
  );
}
