import { openRecording } from '../recordings/open-recording.js';
import type { ReplayDatabase } from './replay-database.js';
import { type ReplayJob, type ReplayManyOptions, type ReplayOutcome, replayMany } from './replay-many.js';

/**
 * How much is replayed into one in-memory database, bytes of recordings: what is written stays in its heap, which 100 MB of recordings of real agents filled
 * (measured with a heap of 1 GB), and a node that is short of heap only collects.
 */
export const BATCH_BYTES = 40_000_000;

/** How replays are spread over databases. */
export interface BatchOptions extends Omit<ReplayManyOptions, 'database'> {
  /** Opens the database of a batch; it is closed behind it. */
  readonly open: () => Promise<ReplayDatabase>;
  readonly batchBytes?: number;
}

async function sizeOf({ path }: ReplayJob): Promise<number> {
  // What cannot be opened is told when it is replayed.
  return openRecording(path).then(
    ({ size }) => size,
    () => 0,
  );
}

/** Neighbours together, as many as a database should hold, at least one. */
async function batchesOf(jobs: readonly ReplayJob[], most: number): Promise<readonly (readonly ReplayJob[])[]> {
  const batches: ReplayJob[][] = [];
  let filled = 0;
  for (const job of jobs) {
    const size = await sizeOf(job);
    if (batches.length === 0 || filled + size > most) {
      batches.push([]);
      filled = 0;
    }
    batches.at(-1)?.push(job);
    filled += size;
  }
  return batches;
}

/** Replays several recordings as `replayMany` does, one batch after the other, each into a database of its own. Throws what opening one throws. */
export async function replayInBatches(jobs: readonly ReplayJob[], options: BatchOptions): Promise<readonly ReplayOutcome[]> {
  const { open, batchBytes = BATCH_BYTES, ...rest } = options;
  const outcomes: ReplayOutcome[] = [];
  for (const batch of await batchesOf(jobs, batchBytes)) {
    rest.signal?.throwIfAborted();
    const database = await open();
    try {
      outcomes.push(...(await replayMany(batch, { ...rest, database })));
    } finally {
      await database.close();
    }
  }
  return outcomes;
}
