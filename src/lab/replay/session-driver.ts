import type { SessionAssembly } from '../../client/session/assemble-session.js';
import type { CallReport } from '../../client/session/call-report.js';
import type { ContextSession } from '../../client/session/context-session.js';
import { quoted } from '../../objects/errors.js';
import { hashText } from '../../objects/hashes.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Message } from '../../objects/object-type.js';
import type { HistoryEvent, Step } from '../../objects/step.js';
import { applyStep, emptySession, type SessionState } from '../../session/session-state.js';
import { ReplayError } from './replay-error.js';

/** A context that was assembled earlier, by an interrupted replay of the same recording. */
type EarlierContext = { readonly kind: 'earlier'; readonly step: number };
type DrivenContext = { readonly kind: 'assembled'; readonly assembly: SessionAssembly } | EarlierContext;

/**
 * One replayed session: what an earlier, interrupted replay wrote already is compared and passed over, what is new goes through the real session. Replaying a
 * recording again therefore never makes a second version of anything (decision B3).
 */
export class SessionDriver {
  readonly #session: ContextSession;
  readonly #known: readonly Step[];
  #state: SessionState;

  /** `known` are the steps that the database holds of the session, of which a branch shares the first `shared` with another. */
  constructor(session: ContextSession, known: readonly Step[], shared = 0) {
    this.#session = session;
    this.#known = known;
    this.#state = known.slice(0, shared).reduce(applyStep, emptySession(session.id));
  }

  get id(): SessionId {
    return this.#session.id;
  }

  /** The session as it stands at this point of the recording. */
  get state(): SessionState {
    return this.#passing ? this.#state : this.#session.state;
  }

  /** Whether what the recording does next was written by an earlier replay. */
  get #passing(): boolean {
    return this.#state.seq < this.#known.length;
  }

  async message(message: Message, native: string | undefined): Promise<void> {
    const text = message.text.toWellFormed();
    if (this.#passed('message', ({ message: known }) => known?.role === message.role && known.text === text)) return;
    await this.#session.reportMessage(message, native);
  }

  /** Records a call; its id is unique in the database, so that it is the same in every replay. */
  async call(report: CallReport & { readonly callId: string }): Promise<void> {
    const given = report.callId.toWellFormed();
    const shown = hashText(report.answer(given as ObjectId));
    const isSame = ({ call }: Step): boolean =>
      (call?.id === given || call?.id.startsWith(`${given}~`) === true) && call.answer?.sha256 === shown;
    if (this.#passed('call', isSame)) return;
    await this.#session.recordCall(report);
  }

  async event(event: HistoryEvent): Promise<void> {
    if (this.#passed('event', ({ event: known }) => known?.kind === event.kind)) return;
    await this.#session.recordEvent(event);
  }

  /** Sets the system prompt; the same one again writes nothing. */
  prompt(text: string): Promise<void> {
    return this.#session.setSystemPrompt(text);
  }

  /** The context of the model call that comes now, with its record kept (decision E7). */
  async context(): Promise<DrivenContext> {
    if (this.#passing) return { kind: 'earlier', step: this.#state.seq };
    return { kind: 'assembled', assembly: await this.#session.assemble({ deliver: 'replay' }) };
  }

  /**
   * Pauses the session [§3.6].
   *
   * @throws {ReplayError} `other-session` – when more was written to it than the recording holds
   */
  async close(): Promise<void> {
    if (this.#passing) throw this.#differs('the recording ends there');
    await this.#session.close();
  }

  #passed(what: string, isSame: (step: Step) => boolean): boolean {
    const step = this.#known[this.#state.seq];
    if (step === undefined) return false;
    if (!isSame(step)) throw this.#differs(`the recording has another ${what} there`);
    this.#state = applyStep(this.#state, step);
    return true;
  }

  #differs(how: string): ReplayError {
    return new ReplayError(
      'other-session',
      `session ${quoted(this.id)} holds something else than this recording: at step ${this.#state.seq + 1} ${how}; replay it into a session or a data folder of its own`,
    );
  }
}
