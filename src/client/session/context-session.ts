import type { SessionLock } from '../../journal/session-lock.js';
import type { ContextRecord } from '../../objects/context-record.js';
import { HeadHashes } from '../../objects/head-hashes.js';
import type { HistoryEvent, ModelUsage, Step } from '../../objects/step.js';
import { systemPromptVersion } from '../../objects/versions.js';
import { ChatPlaces } from '../../session/chat-places.js';
import { isLoss, SessionError } from '../../session/errors.js';
import { planCall, planEvent, planMessage, type SaidMessage } from '../../session/plan-step.js';
import { applyStep, type SessionState } from '../../session/session-state.js';
import { type StoredPut, storedPut } from '../../store/object-store.js';
import { SNAPSHOT_EVERY, toSnapshotPart } from '../../store/step-part.js';
import { defined } from '../../values/defined.js';
import { XtdbError } from '../../xtdb/errors.js';
import { headsAt, turnHeads } from '../delivery/session-heads.js';
import type { AcceptedWrite, SessionWrite } from '../delivery/session-write.js';
import type { RecordMask } from '../record-mask.js';
import { answerProof } from './answer-proof.js';
import { CallIds } from './call-id.js';
import {
  type CallReport,
  callPlan,
  collapsedBy,
  ledgerCall,
  type RecordedCall,
  readingsOf,
  stepFiles,
  storedCall,
  withNotice,
} from './call-report.js';
import type { GivenStep } from './given-step.js';
import { maskedEvent, maskedReport, storedStep } from './masked-step.js';
import { type LoadedSession, leaseOf, reloadSession } from './open-session.js';
import { ReadableSession } from './readable-session.js';
import type { SessionAssembly, SessionAssemblyRecord } from './session-assembly.js';
import { type DeliverOptions, type HandedOut, type SentContext, SessionContexts } from './session-contexts.js';
import type { SessionEnvironment } from './session-environment.js';
import { requireLock, type SessionParts } from './session-lease.js';
import { type StepUses, stepUses } from './use-ledger.js';

/**
 * An open session [§3]. It records what its agent does as steps, one after another, each in one
 * transaction. Calls may overlap; steps never do. A step is visible only after its commit, and a
 * failed step changes nothing.
 *
 * @example
 * ```ts
 * const session = await client.openSession();
 * await session.reportMessage({ role: 'user', text: 'Why does the cart round up?' });
 * const { text } = await session.assemble();
 * ```
 */
export class ContextSession extends ReadableSession {
  readonly #environment: SessionEnvironment;
  #loaded: LoadedSession;
  readonly #lock: SessionLock | undefined;
  #hashes: HeadHashes;
  readonly #callIds: CallIds;
  #queue: Promise<unknown> = Promise.resolve();
  /** Settles once every `keepSent` has ended. */
  #sending: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;
  readonly #contexts: SessionContexts;
  /** Masks secrets in all that this session records. */
  readonly mask: RecordMask;
  readonly #places = new ChatPlaces();
  /**
   * Counts uses for retention by use. Steps of earlier processes are read before the first new
   * step.
   */
  readonly #uses: StepUses;
  /** Set if a write's outcome is unknown, so that the loaded state may be behind the database. */
  #uncertain = false;

  constructor(
    environment: SessionEnvironment,
    loaded: LoadedSession,
    { lock, assemble, hasRandomId, losses }: SessionParts,
  ) {
    super(environment, loaded.state.id);
    this.#environment = environment;
    this.#loaded = loaded;
    this.#lock = lock;
    this.mask = environment.mask;
    this.#hashes = new HeadHashes(this.id);
    this.#callIds = new CallIds(environment, { hasRandomId, losses, latest: () => this.#contexts.latest() });
    this.#uses = stepUses(environment, () => this.#loaded.state);
    this.#contexts = new SessionContexts(environment, () => this.#loaded, assemble);
  }

  /** The session after its last committed step. */
  get state(): SessionState {
    return this.#loaded.state;
  }

  /**
   * Records a finished tool call [§5.6, §5.7]. Resolves when it is acknowledged: in the journal, or
   * without a journal in the database. If it rejects, nothing was acknowledged.
   * @throws {SessionError} `taken-over`, `closed`.
   * @throws {JournalError} it could not be made durable.
   * @throws {XtdbError} the commit failed, without a journal.
   * @throws {DocumentError} a text cannot be stored exactly.
   */
  recordCall(report: CallReport): Promise<RecordedCall> {
    const recorded = this.#serial(async () => {
      const { state } = this.#loaded;
      const id = await this.#callIds.next(state, report.callId);
      const answer = withNotice(report.answer(id), this.#environment.outbox);
      const stored = maskedReport(this.mask, report);
      const proven = stored === report ? answer : withNotice(stored.answer(id), this.#environment.outbox);
      const files = stepFiles(stored, state);
      const call = storedCall(stored, { id, session: this.id, refs: files.refs });
      const { step, applied } = await this.#uses.counted(
        async (rules) => {
          const plan = callPlan(stored, { call: id, at: this.#stepAt(), answer: answerProof(proven, stored), files });
          const step = planCall(state, plan, rules);
          return { step, ...(await this.#write(step, { files: files.observations, call })) };
        },
        (uses) => uses.called(ledgerCall(stored, id)),
      );
      this.#environment.tracking?.follow(this.id, files.observations);
      for (const reading of readingsOf(report)) this.seen.read(reading);
      const shown = this.mask.inAnswers ? proven : answer;
      return { callId: id, answer: shown, collapsed: collapsedBy(step, report), applied };
    });
    this.#environment.tracking?.recording(readingsOf(report), recorded);
    return recorded;
  }

  /** Starts the look-up of a running call's id, so that recording need not wait for it. */
  expectCall(callId: string): void {
    this.#callIds.expect(this.#loaded.state, callId);
  }

  /**
   * Appends a message to the chat (decision B6). A user message begins a turn, unless `opensTurn`
   * says otherwise. `native` is the harness's id, and `usage` the token count. Neither is in the
   * chat.
   */
  reportMessage({ opensTurn, ...message }: SaidMessage, native?: string, usage?: ModelUsage): Promise<void> {
    return this.#serial(async () => {
      const reported = {
        message: { ...message, text: this.mask.text(message.text.toWellFormed()) },
        at: this.#stepAt(),
        native: native?.toWellFormed(),
        usage,
        opensTurn,
      };
      await this.#uses.counted(
        (rules) => this.#write(planMessage(this.#loaded.state, reported, rules), { files: [] }),
        (uses) => (message.role === 'assistant' ? uses.spoke(message.text) : undefined),
      );
    });
  }

  /** Records how a harness changed its own history (decision F1). The chat stays the same. */
  recordEvent(event: HistoryEvent): Promise<void> {
    return this.#serial(async () => {
      const plan = { event: maskedEvent(this.mask, event), at: this.#stepAt() };
      await this.#uses.counted(
        (rules) => this.#write(planEvent(this.#loaded.state, plan, rules), { files: [] }),
        (uses) => uses.changed(event.kind),
      );
    });
  }

  /**
   * Records a step that was planned elsewhere, in another database or from another program's data.
   * Only the id of its call is decided here: the given id if it is free (decision B2).
   * @throws {SessionError} `sequence-gap`, `out-of-order`, `unknown-object` – the step does not
   *   follow the session's last one; also the errors of `recordCall`
   */
  takeStep({ callId, make }: GivenStep): Promise<Step> {
    return this.#serial(async () => {
      const { state } = this.#loaded;
      const id = callId === undefined ? undefined : await this.#callIds.next(state, callId.given);
      const made = make({ state, rules: this.#environment.policy, at: this.#stepAt(), ...defined({ call: id }) });
      const { step, files, call } = storedStep(this.mask, made, { id, session: this.id });
      await this.#write(step, { files, ...defined({ call }) });
      if (step.by !== undefined) this.#environment.tracking?.follow(this.id, files);
      this.#uses.forget();
      return step;
    });
  }

  /** Sets the system prompt [§2.6]; null removes it. Writes nothing if it is the same. */
  setSystemPrompt(prompt: string | null): Promise<void> {
    return this.#serial(async () => {
      const text = prompt === null ? null : this.mask.text(prompt.toWellFormed());
      if (text === this.#loaded.prompt) return;
      const { promptAt: before, state } = this.#loaded;
      // The prompt's time must be after the previous prompt's, and not before the last step.
      const promptAt = Math.max(this.#environment.clock(), before + 1, state.lastAt);
      await this.#heads([storedPut({ version: systemPromptVersion(this.id, text), validTime: new Date(promptAt) })]);
      this.#loaded = { ...this.#loaded, prompt: text, promptAt };
    });
  }

  /** The positions of the chat's messages and calls, by the harness's ids. */
  get places(): ChatPlaces {
    return this.#places.upTo(this.state);
  }

  /** Returns the next model context [§4] and its record (decision E7). Waits for running steps. */
  async assemble({ deliver, renderer = 'text', ...options }: DeliverOptions = {}): Promise<SessionAssembly> {
    const assembly = await this.#serial(() => this.#contexts.assemble(options));
    if (deliver === undefined) return assembly;
    const record = await this.deliver((renderer === 'text' ? assembly : assembly.asMessages()).record, {
      delivered: deliver,
    });
    return renderer === 'text'
      ? { ...assembly, record }
      : { ...assembly, asMessages: () => ({ ...assembly.asMessages(), record }) };
  }

  /** Renders and stores the next context from the last one; see `SessionContexts.next`. */
  readonly nextContext: SessionContexts['next'] = (delivered) => this.#serial(() => this.#contexts.next(delivered));
  /** Stores a request that the agent built itself; see `SessionContexts.keepSent`. */
  keepSent(context: SentContext): ReturnType<SessionContexts['keepSent']> {
    const kept = this.#serial(async () => undefined).then(() =>
      this.#contexts.keepSent(context, (work) => this.#inOrder(work)),
    );
    this.#sending = Promise.allSettled([this.#sending, kept]);
    return kept;
  }

  /** Starts the check for other writers before the next optimistic context. */
  refresh(): void {
    this.#contexts.refresh();
  }

  /**
   * Stores the assembly record of a context (decision E7). Await it before you hand out the
   * context: the record is then as durable as a step. Storing the same record again changes
   * nothing. Rejects with JournalError.
   */
  deliver(record: SessionAssemblyRecord, how: HandedOut): Promise<SessionAssemblyRecord & HandedOut> {
    return this.#contexts.deliver(record, how);
  }

  /**
   * Writes records of this session (decision 0016) with the texts they reference by hash. Uses one
   * transaction, after the database has every acknowledged step, and only while this client owns
   * the session. Later steps wait for it.
   * @throws {SessionError} `taken-over`, `closed`: nothing was written; `node-unavailable` – the
   *   database does not take the earlier steps
   * @throws {DocumentError} a record is not valid
   * @throws {XtdbError}
   */
  keepRecords(records: readonly ContextRecord[], texts: readonly string[] = []): Promise<void> {
    return this.#serial(() => this.#contexts.keepRecords(records, texts, () => this.#requireLease()));
  }

  /** Reports a handed-out request for retention by use. A new base shows active objects only. */
  handedOut({ tokens, isBase }: { readonly tokens: number; readonly isBase: boolean }): void {
    this.#environment.telemetry.add('palimpsest.context.tokens', tokens);
    const told = this.#queue.then(async () => {
      const uses = await this.#uses.open();
      uses?.handedOut(tokens);
      if (isBase) uses?.settled(this.state);
    });
    this.#queue = told.catch(() => undefined);
  }

  /** Waits until the database has every acknowledged step. Returns false on timeout. */
  isDelivered(limitMs: number): Promise<boolean> {
    return this.#environment.outbox.drained(this.id, limitMs);
  }

  /** Pauses the session [§3.6]: ends running steps and closes the last turn. Idempotent. */
  close(): Promise<void> {
    const end = async (): Promise<void> => {
      const { state, position, tellsEnd = false } = this.#loaded;
      if (state.seq <= position.upto && !tellsEnd) return;
      const { term } = position;
      const closing = headsAt(state, { before: position, at: state.lastAt, term, hashes: this.#hashes });
      await this.#heads(closing.puts, closing.position);
    };
    this.#closing ??= this.#sending
      .then(() => this.#inOrder(end, false))
      .catch((error: unknown) => {
        // Another writer owns a lost session, so do not close it. The journal holds our undelivered
        // writes.
        if (!isLoss(error)) throw error;
      })
      .finally(() => {
        this.#contexts.close();
        this.#environment.tracking?.leave(this.id);
        this.#lock?.release();
      });
    return this.#closing;
  }

  /** Whether another process took the session over or a write failed for good. */
  get isLost(): boolean {
    const failure = this.#environment.recovery.failure({ session: this.id, lease: this.#loaded.lease });
    return failure !== undefined || this.#lock?.isStillOurs() === false;
  }

  /**
   * Throws if another process took the session over: nothing more may be acknowledged here
   * (decision F5).
   */
  #requireLease(informs = true): void {
    this.#environment.recovery.requireWritable(this.id, this.#loaded.lease, informs);
    requireLock(this.#lock, this.id);
  }

  #serial<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing === undefined) return this.#inOrder(work);
    return Promise.reject(new SessionError('closed', `session ${this.id} is closed; open it again to continue`));
  }

  /**
   * Runs work after all earlier requests. `informs`: whether the user sees the error of a lost
   * session.
   */
  #inOrder<T>(work: () => Promise<T>, informs = true): Promise<T> {
    const done = this.#queue.then(async () => {
      this.#requireLease(informs);
      if (this.#uncertain) {
        this.#loaded = await reloadSession(this.#environment, this.#loaded);
        this.#uses.forget();
        this.#uncertain = false;
      }
      return work();
    });
    this.#queue = done.catch(() => undefined);
    return done;
  }

  /**
   * Returns a step time after the prompt's, so that a fork at an earlier step finds its prompt
   * (decision F2).
   */
  #stepAt(): number {
    return Math.max(this.#environment.clock(), this.#loaded.promptAt + 1);
  }

  async #write(step: Step, parts: Pick<SessionWrite, 'files' | 'call'>): Promise<AcceptedWrite> {
    const { state, position, lease, indexedAtSnapshot } = this.#loaded;
    const after = applyStep(state, step);
    const boundary = step.opens === undefined ? undefined : turnHeads({ before: state, after }, position, this.#hashes);
    const snapshot =
      step.seq % SNAPSHOT_EVERY === 0
        ? toSnapshotPart({ session: this.id, seq: step.seq, sets: after.sets, indexedBefore: indexedAtSnapshot })
        : undefined;
    const heads = boundary?.puts ?? [];
    const write = { session: this.id, lease, step, ...parts, heads, at: step.at, ...defined({ snapshot }) };
    const accepted = await this.#accept(write);
    this.#loaded = {
      ...this.#loaded,
      state: after,
      ...(boundary === undefined ? {} : { position: boundary.position, lease: leaseOf(boundary.puts, this.id) }),
      ...(snapshot === undefined ? {} : { indexedAtSnapshot: after.sets.index.length }),
    };
    return accepted;
  }

  /** Acknowledges heads outside a step. */
  async #heads(heads: readonly StoredPut[], position = this.#loaded.position): Promise<void> {
    const { lease } = this.#loaded;
    await this.#accept({ session: this.id, lease, files: [], heads, at: this.#environment.clock() });
    if (heads.some(({ head }) => head.type === 'session'))
      this.#loaded = { ...this.#loaded, position, lease: leaseOf(heads, this.id) };
  }

  async #accept(write: SessionWrite): Promise<AcceptedWrite> {
    try {
      return await this.#environment.outbox.accept(write, () => requireLock(this.#lock, this.id));
    } catch (error) {
      if (error instanceof XtdbError) this.#uncertain = true;
      // After the failure, the cached hashes may include a step that was not written.
      this.#hashes = new HeadHashes(this.id);
      throw error;
    }
  }
}
