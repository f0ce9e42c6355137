import type { CallReport, VerbPlan } from '../../client/session/call-report.js';
import type { ContextSession } from '../../client/session/context-session.js';
import { isSilent } from '../../objects/chat-log.js';
import { quoted } from '../../objects/errors.js';
import { hashText } from '../../objects/hashes.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Message } from '../../objects/object-type.js';
import type { HistoryEvent, ModelUsage, Step } from '../../objects/step.js';
import { applyStep, applySteps, emptySession, type SessionState } from '../../session/session-state.js';
import type { Verb } from '../../session/verb-outcome.js';
import { defined } from '../../values/defined.js';
import { KeptPlaces } from '../recordings/kept-places.js';
import type { EntryOf, RecordedEntry } from '../recordings/neutral-session.js';
import { recordedPath } from './call-effects.js';
import { type ContextMeasure, ContextMeter, type CountTokens, measureOf } from './context-measure.js';
import { ReplayError } from './replay-error.js';

/** A call that has no result yet. */
export interface OpenRecordedCall {
  readonly entry: EntryOf<'call'>;
  /** The time of the call, in milliseconds since 1970. */
  readonly at: number;
  /** The step of the message that made it, if recorded. */
  readonly by: number | undefined;
}

/** Settings for rendering and measuring a session's contexts. */
export interface ContextHow {
  readonly shortIds: boolean;
  readonly countTokens: CountTokens | undefined;
}

/** Kind of the event for a result whose text the agent replaced after an import had recorded it. */
const REPLACED = 'shortened';
const isReplacement = (event: HistoryEvent | undefined): boolean => event?.kind === REPLACED;

/**
 * Matches the names under which agents call our tools that change a session's sets, also over MCP.
 */
const OWN_VERB = /(?:^|__|[./:]|^mcp_[^_]+_)(activate|deactivate|pin|unpin)$/;

/**
 * Returns the object references in a call's arguments. Undefined if they are not arguments of our
 * tools.
 */
function referencesIn({ ids }: CallReport['args']): readonly string[] | undefined {
  const isOurs = Array.isArray(ids) && ids.length > 0 && ids.every((id) => typeof id === 'string');
  return isOurs ? (ids as readonly string[]) : undefined;
}

/**
 * Plans the effect of our `activate`, `deactivate`, `pin` or `unpin`, called by an agent over MCP.
 * `palimpsest mcp` only answers the call; the import of the recording applies it. Undefined for
 * other calls, failed calls, and calls that name no object of the session.
 */
async function ownVerbPlan(
  session: Pick<ContextSession, 'planVerb' | 'resolve'>,
  { tool, args, status }: CallReport,
  cwd: string | undefined,
): Promise<VerbPlan | undefined> {
  const [, verb] = OWN_VERB.exec(tool) ?? [];
  const references = referencesIn(args);
  if (verb === undefined || references === undefined || status === 'fail') return undefined;
  const named = references.map((reference) => {
    const isKnown = session.resolve(reference).kind !== 'unknown';
    return isKnown ? reference : (recordedPath(cwd, reference) ?? reference);
  });
  const plan = await session.planVerb(verb as Verb, [...new Set(named)]);
  return plan.entries.some(({ ok }) => ok) ? plan : undefined;
}

/** A session opened in the database, with the steps that the database already has of it. */
interface OpenedSession {
  readonly session: ContextSession;
  readonly known: readonly Step[];
  /** Number of steps that a branch shares with its parent. */
  readonly shared?: number;
}

/**
 * A recorded session during its replay, or a branch of it after a rewind. Steps that an earlier
 * replay wrote are compared with the recording and skipped. New steps go through the real session.
 * So a repeated replay never creates a second version of an object (decision B3).
 */
export class RecordedSession {
  readonly entry: EntryOf<'session'>;
  /** The session from which this branch was made. */
  readonly branchOf: SessionId | undefined;
  /** Calls without results, in the order of the calls. */
  readonly open = new Map<string, OpenRecordedCall>();
  readonly contexts: ContextMeasure[] = [];
  /**
   * True from the start of a model's answer to the next input. The context of the answer was
   * assembled at its start.
   */
  answering = false;
  /** The step of the current answer's last message. */
  said: number | undefined;
  /** The session's state when the model began its current answer. */
  seen: SessionState;
  /** Whether only the harness has sent messages so far, before the person's first prompt. */
  #isPrelude = true;
  /** Number of files inserted into the context without a call. */
  attached = 0;
  /** Whether its newest entry was copied from its parent. */
  isCopying = false;
  /** The session as opened in the database. */
  readonly session: ContextSession;
  readonly #known: readonly Step[];
  readonly #meter: ContextMeter;
  readonly #how: ContextHow;
  #passed: SessionState;
  /**
   * True if an older release of Palimpsest began this replay. That release omitted empty answers,
   * so this replay omits them, too.
   */
  #leavesOut = false;
  /** The session's last steps around each entry. */
  places = new KeptPlaces<number>();
  /** The last step before each text of reasoning. */
  readonly #thoughts: number[] = [];

  constructor(
    recorded: { readonly entry: EntryOf<'session'>; readonly branchOf?: SessionId },
    { session, known, shared = 0 }: OpenedSession,
    how: ContextHow,
  ) {
    this.entry = recorded.entry;
    this.branchOf = recorded.branchOf;
    this.session = session;
    this.#known = known;
    this.#passed = applySteps(emptySession(session.id), known.slice(0, shared));
    this.#meter = new ContextMeter(how.countTokens);
    this.#how = how;
    this.seen = this.state;
  }

  get id(): SessionId {
    return this.session.id;
  }

  /** The session's state at this point of the recording. */
  get state(): SessionState {
    return this.#passing ? this.#passed : this.session.state;
  }

  /** True while an earlier replay has already written the next step. */
  get #passing(): boolean {
    return this.#passed.seq < this.#known.length;
  }

  /**
   * Whether the next step of an earlier import is a compaction. An import of an earlier version
   * wrote calls without results after it.
   */
  get isAtCompaction(): boolean {
    this.#passReplacements();
    return this.#known[this.#passed.seq]?.event?.kind === 'compacted';
  }

  /**
   * Records a message and returns its step. Undefined for an empty message in a replay that omits
   * empty messages.
   */
  async message(
    message: Message,
    {
      native,
      usage,
      origin,
    }: Pick<EntryOf<'message'>, 'origin'> & { readonly native?: string; readonly usage?: ModelUsage },
  ): Promise<number | undefined> {
    const opensTurn = this.#opensTurn(message, origin);
    const text = this.#withoutKnownParts(message);
    const isSame = ({ message: known }: Step): boolean => known?.role === message.role && known.text === text;
    const next = this.#known[this.#passed.seq];
    if (isSilent({ ...message, text }) && (next === undefined ? this.#leavesOut : !isSame(next))) {
      this.#leavesOut = true;
      return undefined;
    }
    if (!this.#passes('message', isSame)) {
      await this.session.reportMessage({ ...message, text, opensTurn }, native, usage);
    }
    return this.state.seq;
  }

  /**
   * Returns whether a message opens a turn. A user message that the harness inserted opens none.
   * Messages before the first prompt belong to the turn of that prompt.
   */
  #opensTurn({ role }: Message, origin: EntryOf<'message'>['origin']): boolean {
    const { seq, turnRule } = this.state;
    const isPrompt = role === 'user' && origin !== 'harness';
    const wasPrelude = this.#isPrelude;
    if (isPrompt || role === 'assistant') this.#isPrelude = false;
    return seq === 0 || (isPrompt && (!wasPrelude || turnRule !== 'user-message'));
  }

  /**
   * Skips the parts of an answer that an import recorded while the agent was still writing the
   * answer. Returns the rest of the text.
   */
  #withoutKnownParts({ role, text: whole }: Message): string {
    let text = whole.toWellFormed();
    for (;;) {
      this.#passReplacements();
      const step = this.#known[this.#passed.seq];
      const part = role === 'assistant' && step?.message?.role === role ? step.message.text : '';
      if (step === undefined || part === '' || !text.startsWith(`${part}\n`)) return text;
      this.#passed = applyStep(this.#passed, step);
      text = text.slice(part.length + 1);
    }
  }

  /**
   * Records a call under an id that is unique in the database and equal in every replay.
   * `isReplaced` means that the model saw another text than the tool's output. The call then equals
   * a known step even if an earlier import recorded the output.
   */
  async call(report: CallReport & { readonly callId: string }, isReplaced = false): Promise<void> {
    const given = report.callId.toWellFormed();
    const shown = hashText(report.answer(given as ObjectId));
    const isSame = ({ call }: Step): boolean =>
      (call?.id === given || call?.id.startsWith(`${given}~`) === true) &&
      (isReplaced || call.answer?.sha256 === shown);
    this.#isPrelude = false;
    if (this.#passes('call', isSame)) return;
    const plan = await ownVerbPlan(this.session, report, this.entry.cwd);
    await this.session.recordCall({ ...report, ...defined({ plan }) });
  }

  /** Records that the model sees another text in place of a recorded result. */
  async replacement(detail: string): Promise<void> {
    const isSame = ({ event }: Step): boolean => isReplacement(event) && event?.detail === detail;
    if (this.#passing && this.#known.slice(this.#passed.seq).some(isSame)) return this.#passReplacements();
    await this.session.recordEvent({ kind: REPLACED, detail });
  }

  async event(event: HistoryEvent): Promise<void> {
    if (this.#passes('event', ({ event: known }) => known?.kind === event.kind)) return;
    await this.session.recordEvent(event);
  }

  /**
   * Records that all steps so far were copied from the parent. An import of an earlier version
   * wrote no such step, and its session continues without.
   */
  async endCopy(parent: string | undefined): Promise<void> {
    this.#passReplacements();
    const next = this.#known[this.#passed.seq];
    if (this.state.seq === 0 || (next !== undefined && next.event?.kind !== 'forked')) return;
    await this.event({ kind: 'forked', kept: this.state.seq, ...defined({ detail: parent }) });
  }

  /**
   * Assembles and measures the context of the next model call, and stores its record (decision E7).
   * Undefined if an earlier replay did so.
   */
  async context(): Promise<ContextMeasure | undefined> {
    this.#passReplacements();
    if (this.#passing) return undefined;
    if (this.#how.countTokens === undefined && !this.#how.shortIds)
      return measureOf(await this.session.nextContext('replay'), this.state.indexSize);
    const assembly = await this.session.assemble({ deliver: 'replay' });
    return this.#meter.measure(assembly, this.state.indexSize);
  }

  /** Counts a text of reasoning, which is not recorded. */
  thought(): void {
    this.#thoughts.push(this.state.seq);
  }

  /** Records how many texts of reasoning the recording has up to here, if the session continued. */
  async #noteReasoning(at: number): Promise<void> {
    const { turn, seq } = this.session.state;
    const texts = this.#thoughts.length;
    if (texts === 0 || seq <= this.#known.length) return;
    const body = { type: 'reasoning-left-out', data: { texts } };
    await this.session.keepRecords([{ kind: 'event', owner: { session: this.id }, turn, seq, at, basis: null, body }]);
  }

  /**
   * Pauses the session [§3.6]. `at`: the time of its end, in milliseconds since 1970.
   *
   * @throws {ReplayError} `other-session` – the session has more steps than the recording
   */
  async close(at: number): Promise<void> {
    this.#passReplacements();
    if (this.#passing) throw this.#differs('the recording ends there');
    await this.#noteReasoning(at);
    await this.session.close();
  }

  /** Stores the session's last step before an entry, and the last step after it. */
  note(entry: Exclude<RecordedEntry, { kind: 'session' }>, before: number): void {
    this.places.note(entry, { before, after: this.state.seq });
  }

  /** Records a compaction, with the steps that it keeps or drops if the recording names them. */
  async compaction({ dropped, kept_from: kept, trigger, ...entry }: EntryOf<'compaction'>): Promise<void> {
    this.answering = false;
    const clearsResults = trigger === 'microcompact';
    const summary = entry.summary ?? (dropped === undefined || clearsResults ? undefined : '');
    const before = this.places.around(kept)?.before;
    const gone = dropped?.flatMap((native) => this.#stepsOf(native)) ?? [];
    await this.event({
      kind: 'compacted',
      ...defined({ missing: dropped?.length, detail: summary?.toWellFormed() }),
      ...defined({
        keptFrom: before === undefined ? undefined : before + 1,
        gone: gone.length === 0 ? undefined : gone,
      }),
    });
  }

  /** Returns the steps of an entry by the recording's id. */
  #stepsOf(native: string): readonly number[] {
    const { before = 0, after = 0 } = this.places.around(native) ?? {};
    return Array.from({ length: after - before }, (_, i) => before + 1 + i);
  }

  /** Returns the branch that continues after the shared steps. */
  branch(opened: Required<OpenedSession>): RecordedSession {
    const branch = new RecordedSession({ entry: this.entry, branchOf: this.id }, opened, this.#how);
    branch.#leavesOut = this.#leavesOut;
    branch.isCopying = this.isCopying;
    branch.places = this.places.within({
      end: (after) => after <= opened.shared,
      begin: (before) => before < opened.shared,
    });
    branch.#thoughts.push(...this.#thoughts.filter((before) => before < opened.shared));
    branch.#isPrelude = !branch.places.hasPrompts;
    return branch;
  }

  /**
   * Skips known events about replaced results. Reading the whole recording finds each replacement
   * at its result instead.
   */
  #passReplacements(): void {
    for (;;) {
      const step = this.#known[this.#passed.seq];
      if (step === undefined || !isReplacement(step.event)) return;
      this.#passed = applyStep(this.#passed, step);
    }
  }

  #passes(what: string, isSame: (step: Step) => boolean): boolean {
    this.#passReplacements();
    const step = this.#known[this.#passed.seq];
    if (step === undefined) return false;
    if (!isSame(step)) throw this.#differs(`the recording has another ${what}`);
    this.#passed = applyStep(this.#passed, step);
    return true;
  }

  #differs(how: string): ReplayError {
    return new ReplayError(
      'other-session',
      `session ${quoted(this.id)} does not hold this recording: at step ${this.#passed.seq + 1} ${how}. Replay ` +
        'it into another session or data folder',
    );
  }
}
