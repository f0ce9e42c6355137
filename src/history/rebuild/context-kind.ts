import type { AssemblyProof, Delivery } from '../../objects/assembly-proof.js';
import type { Step } from '../../objects/step.js';

/**
 * What is known of the context of a model call (decision E12). `sent`: its record has the bytes that went out. `transcript`: an agent's own file tells of it; what the
 * agent's harness did to it may be missing. `unseen`: Palimpsest has no record of it, because an agent over plain MCP builds its requests itself, or because a harness
 * sent its own list.
 */
export type ContextKind = 'sent' | 'transcript' | 'unseen';

/** Deliveries that reached no model: a replay renders what a recorded session would have been sent. */
const TRANSCRIBED: ReadonlySet<Delivery> = new Set(['replay']);

/** The kind of a context that has a record. */
export const kindOfRecord = ({ delivered }: Pick<AssemblyProof, 'delivered'>): Exclude<ContextKind, 'unseen'> =>
  TRANSCRIBED.has(delivered) ? 'transcript' : 'sent';

/** The records whose contexts went out: not those of which the next step says that the harness's own list went out instead. */
export function withoutBypassed(records: readonly AssemblyProof[], steps: readonly Step[]): readonly AssemblyProof[] {
  const bypassed = new Set(steps.flatMap(({ seq, event }) => (event?.kind === 'bypassed' ? [seq - 1] : [])));
  return bypassed.size === 0 ? records : records.filter(({ step }) => !bypassed.has(step));
}

/** What is known of the model calls of a session's turns. */
export interface TurnKinds {
  /** The records that they follow from, oldest first. */
  readonly records: readonly AssemblyProof[];
  /** Every kind that the calls of a turn have; a turn with a bypassed call has `unseen` beside the kind of the others. */
  of(turn: number): ReadonlySet<ContextKind>;
}

/** The kinds of the turns of a session: by its records, by its steps, and by whether it was imported from another program's files. */
export function turnKinds(of: {
  readonly records: readonly AssemblyProof[];
  readonly steps: readonly Step[];
  readonly isImported: boolean;
}): TurnKinds {
  const found = new Map<number, Set<ContextKind>>();
  const add = (turn: number, kind: ContextKind): void =>
    void found.set(turn, (found.get(turn) ?? new Set<ContextKind>()).add(kind));
  for (const record of of.records) add(record.turn, kindOfRecord(record));
  for (const { turn, event } of of.steps) if (event?.kind === 'bypassed') add(turn, 'unseen');
  const others: ReadonlySet<ContextKind> = new Set([of.isImported ? 'transcript' : 'unseen']);
  return { records: of.records, of: (turn) => found.get(turn) ?? others };
}
