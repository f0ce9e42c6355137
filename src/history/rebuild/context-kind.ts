import type { AssemblyProof, Delivery } from '../../objects/assembly-proof.js';
import type { Step } from '../../objects/step.js';

/**
 * How the context of a model call is known (decision E12).
 *
 * - `sent`: an assembly record has the hash of the sent request.
 * - `transcript`: an agent's own file shows it. Changes that the harness made may be missing.
 * - `unseen`: there is no record. An agent over plain MCP builds its own requests, or a harness
 *   sent its own list.
 */
export type ContextKind = 'sent' | 'transcript' | 'unseen';

/**
 * Deliveries whose contexts reached no model. A replay renders the contexts of a recorded session.
 */
const TRANSCRIBED: ReadonlySet<Delivery> = new Set(['replay']);

/** Returns the kind of a recorded context. */
export const kindOfRecord = ({ delivered }: Pick<AssemblyProof, 'delivered'>): Exclude<ContextKind, 'unseen'> =>
  TRANSCRIBED.has(delivered) ? 'transcript' : 'sent';

/**
 * Returns the records whose contexts were sent. Drops a record if the next step reports that the
 * harness sent its own list instead. A record of the sent bytes stays.
 */
export function withoutBypassed(records: readonly AssemblyProof[], steps: readonly Step[]): readonly AssemblyProof[] {
  const bypassed = new Set(steps.flatMap(({ seq, event }) => (event?.kind === 'bypassed' ? [seq - 1] : [])));
  return bypassed.size === 0 ? records : records.filter(({ step, sent }) => sent !== undefined || !bypassed.has(step));
}

/**
 * Drops a record if another record has the sent bytes of the same call. The dropped record comes
 * from a replay, or from a gateway before it sent the request.
 */
export function withoutKnownBytes(records: readonly AssemblyProof[]): readonly AssemblyProof[] {
  const seen = new Set(records.flatMap(({ sent, step }) => (sent === undefined ? [] : [step])));
  return seen.size === 0
    ? records
    : records.filter(
        ({ delivered, step, sent }) =>
          sent !== undefined || !seen.has(step) || !(TRANSCRIBED.has(delivered) || delivered === 'gateway'),
      );
}
