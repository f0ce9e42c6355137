import type { SessionId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import { messageOf } from '../../values/thrown.js';
import type { SessionWrite } from './session-write.js';

const STAYS =
  'It and what follows it stay in the journal, and are tried again whenever the session is opened: look at palimpsest doctor, which names them and says what to do; where nodes share a log, palimpsest journal adopt delivers a copy of the data folder through another one';

/** What a write is, for whoever is told that it has not arrived. */
function whatIs({ session, step, assembly }: SessionWrite): string {
  if (step !== undefined) return `step ${step.seq} of session ${session}`;
  return assembly === undefined ? `a change of the head of session ${session}` : `the record of a context of session ${session}`;
}

/** What was refused, by whom, and why. */
interface Refusal {
  /** Who refused it. */
  readonly refusal: string;
  readonly cause: unknown;
  /** Whether a journal holds it. */
  readonly isDurable: boolean;
}

/** Thrown for something acknowledged that was refused for good, by its session or by the fork that was to keep it. */
export class NotKeptError extends SessionError {
  /** What was refused and why, without what is to be done. */
  readonly what: string;

  constructor(write: SessionWrite, { refusal, cause, isDurable }: Refusal) {
    const what = `${whatIs(write)} was acknowledged and is not in the database: ${refusal} (${messageOf(cause)})`;
    super('not-kept', isDurable ? `${what}. ${STAYS}` : what, { cause });
    this.what = what;
  }
}

/** A write that its session, or the fork that is to keep it, refused for good; How is whatever its delivery needs to be tried again. */
interface RefusedWrite<How> {
  readonly write: SessionWrite;
  readonly how: How;
  /** Its place among all that this client accepted. */
  readonly nth: number;
}

/** The acknowledged writes of a client that were refused for good and lie in a journal, until they are tried again; and whom that has been told. */
export class RefusedWrites<How> {
  #writes: readonly RefusedWrite<How>[] = [];
  readonly #untold = new Map<SessionId, Error>();

  /** Those of a session, in the order in which they were accepted. */
  of(session: SessionId): readonly RefusedWrite<How>[] {
    return this.#writes.filter(({ write }) => write.session === session).toSorted((a, b) => a.nth - b.nth);
  }

  add(refused: RefusedWrite<How>): void {
    this.#writes = [...this.#writes, refused];
  }

  /** Takes some out, to be tried again. */
  take(taken: readonly RefusedWrite<How>[]): void {
    this.#writes = this.#writes.filter((one) => !taken.includes(one));
  }

  /** Notes that whoever uses a session does not know yet that something of it was refused. */
  owe(session: SessionId, error: Error): void {
    if (!this.#untold.has(session)) this.#untold.set(session, error);
  }

  /** What whoever uses a session has to be told; it counts as told then. */
  tell(session: SessionId): Error | undefined {
    const error = this.#untold.get(session);
    this.#untold.delete(session);
    return error;
  }
}
