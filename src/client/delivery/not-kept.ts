import type { SessionId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import { messageOf } from '../../values/thrown.js';
import type { SessionWrite } from './session-write.js';

const STAYS =
  'The journal keeps it and the writes after it, and retries them whenever the session is opened. ' +
  'Run palimpsest doctor, which names them and says what to do. If nodes share a log, ' +
  'palimpsest journal adopt delivers a copy of the data folder through another node';

/** Describes a write in an error message. */
function whatIs({ session, step, assembly }: SessionWrite): string {
  if (step !== undefined) return `step ${step.seq} of session ${session}`;
  return assembly === undefined
    ? `a change of the head of session ${session}`
    : `the assembly record of a context of session ${session}`;
}

/** Why a write was refused. */
interface Refusal {
  /** Describes what refused the write. */
  readonly refusal: string;
  readonly cause: unknown;
  /** Whether a journal holds the write. */
  readonly isDurable: boolean;
}

/** Thrown if a session or its fork refuses an acknowledged write for good. */
export class NotKeptError extends SessionError {
  /** The refused write and the reason, without the advice. */
  readonly what: string;

  constructor(write: SessionWrite, { refusal, cause, isDurable }: Refusal) {
    const what = `${whatIs(write)} was acknowledged and is not in the database: ${refusal} (${messageOf(cause)})`;
    super('not-kept', isDurable ? `${what}. ${STAYS}` : what, { cause });
    this.what = what;
  }
}

/** A write refused for good by its session or its fork. `How` is the data for a retry. */
interface RefusedWrite<How> {
  readonly write: SessionWrite;
  readonly how: How;
  /** Position among all writes that this client accepted. */
  readonly nth: number;
}

/**
 * The acknowledged writes of a client that were refused for good and wait in a journal for a retry.
 * Also tracks which refusals users have not seen yet.
 */
export class RefusedWrites<How> {
  #writes: readonly RefusedWrite<How>[] = [];
  readonly #untold = new Map<SessionId, Error>();

  /** Returns the refused writes of a session in order of acceptance. */
  of(session: SessionId): readonly RefusedWrite<How>[] {
    return this.#writes.filter(({ write }) => write.session === session).toSorted((a, b) => a.nth - b.nth);
  }

  add(refused: RefusedWrite<How>): void {
    this.#writes = [...this.#writes, refused];
  }

  /** Removes writes that are about to be retried. */
  take(taken: readonly RefusedWrite<How>[]): void {
    this.#writes = this.#writes.filter((one) => !taken.includes(one));
  }

  /** Records that the session's user has not seen this refusal yet. */
  owe(session: SessionId, error: Error): void {
    if (!this.#untold.has(session)) this.#untold.set(session, error);
  }

  /** Returns the unreported error of a session and marks it as reported. */
  tell(session: SessionId): Error | undefined {
    const error = this.#untold.get(session);
    this.#untold.delete(session);
    return error;
  }
}
