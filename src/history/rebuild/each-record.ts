import pLimit from 'p-limit';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { isOfEpoch } from './epoch-chain.js';

/** How many records are worked on at once: the database answers one while another is made. */
export const READ_AT_ONCE = 8;

/**
 * Does something with each record of a session's contexts, with several at a time, those of one epoch one after another: each goes on where the one before ended. What was made of each, in the
 * order of the records. Throws what `work` throws, of several failures that of the earliest record, once all have ended.
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
