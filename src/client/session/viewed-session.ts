import type { ObjectId, SessionId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import type { SessionState } from '../../session/session-state.js';
import { assembleAsOf } from './assemble-session.js';
import { type CallReport, type RecordedCall, readingsOf } from './call-report.js';
import { type LoadedSession, readSession } from './open-session.js';
import { ReadableSession } from './readable-session.js';
import type { AssembleOptions, SessionAssembly } from './session-assembly.js';
import type { SessionEnvironment } from './session-environment.js';

/**
 * A session that another process writes. This process answers the agent's calls and writes nothing.
 * The writer records each call from the agent's transcript, so it becomes one step.
 */
export class ViewedSession extends ReadableSession {
  readonly #environment: SessionEnvironment;
  #loaded: LoadedSession;

  private constructor(environment: SessionEnvironment, loaded: LoadedSession) {
    super(environment, loaded.state.id);
    this.#environment = environment;
    this.#loaded = loaded;
  }

  /** Reads a session. Undefined if the database does not have it. Throws XtdbError. */
  static async open(environment: SessionEnvironment, id: SessionId): Promise<ViewedSession | undefined> {
    const loaded = await readSession(environment, id);
    return loaded === undefined ? undefined : new ViewedSession(environment, loaded);
  }

  /** Reads the steps that the writer has added. Throws XtdbError. */
  async reread(): Promise<void> {
    this.#loaded = (await readSession(this.#environment, this.id)) ?? this.#loaded;
  }

  get state(): SessionState {
    return this.#loaded.state;
  }

  /** Returns the context that the session would have [§4]. No record of it is kept. */
  async assemble(options: AssembleOptions = {}): Promise<SessionAssembly> {
    const made = await assembleAsOf(this.#environment, { session: this.id, basis: {} }, options);
    if (made !== undefined) return made;
    throw new SessionError('unknown-session', `session ${this.id} is no longer in the database; call again`);
  }

  /**
   * Returns the answer of a finished call. Its id is the agent's, or empty if the agent gave none.
   */
  async recordCall(report: CallReport): Promise<Omit<RecordedCall, 'applied'>> {
    for (const reading of readingsOf(report)) this.seen.read(reading);
    const callId = (report.callId ?? '') as ObjectId;
    return { callId, answer: report.answer(callId), collapsed: [] };
  }
}
