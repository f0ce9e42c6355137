import pLimit from 'p-limit';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { isOfEpoch } from './epoch-chain.js';

/** Number of records processed at a time. The database answers for one while another is rebuilt. */
export const READ_AT_ONCE = 8;

/**
 * Applies `work` to each record of a session's contexts. Several run at a time. Those of one epoch
 * run in order, because each continues the previous one. Returns the results in the order of the
 * records.
 *
 * Waits until all have settled, then throws the failure of the earliest record.
 */
export async function eachRecord<T>(
  proofs: readonly AssemblyProof[],
  work: (proof: AssemblyProof) => Promise<T>,
): Promise<readonly T[]> {
  const made: Promise<T>[] = [];
  const atOnce = pLimit(READ_AT_ONCE);
  const epochs = new Map<string, Promise<unknown>>();
  for (const proof of proofs) {
    if (!isOfEpoch(proof)) {
      made.push(atOnce(() => work(proof)));
      continue;
    }
    const epoch = `${proof.session} ${proof.epoch.number}`;
    const next = (epochs.get(epoch) ?? Promise.resolve()).then(() => atOnce(() => work(proof)));
    epochs.set(
      epoch,
      next.catch(() => undefined),
    );
    made.push(next);
  }
  const done = await Promise.allSettled(made);
  return done.map((one) => {
    if (one.status === 'rejected') throw one.reason;
    return one.value;
  });
}
