import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ContextKind } from './context-kind.js';
import type { SessionRequest } from './session-requests.js';

/** The kinds of the model calls in a session's turns. */
export interface TurnKinds {
  /** The records of sent requests, oldest first. */
  readonly records: readonly AssemblyProof[];
  readonly requests: readonly SessionRequest[];
  readonly isTranscript: boolean;
  /** Returns the kinds of a turn's model calls. A call with the harness's own list is `unseen`. */
  of(turn: number): ReadonlySet<ContextKind>;
}

/** Derives the kinds of a session's turns from its requests. */
export function turnKinds(requests: readonly SessionRequest[], isTranscript: boolean): TurnKinds {
  const found = new Map<number, Set<ContextKind>>();
  for (const { turn, kind } of requests) found.set(turn, (found.get(turn) ?? new Set<ContextKind>()).add(kind));
  const others: ReadonlySet<ContextKind> = new Set([isTranscript ? 'transcript' : 'unseen']);
  const records = requests.flatMap(({ proof }) => proof ?? []);
  return { records, requests, isTranscript, of: (turn) => found.get(turn) ?? others };
}
