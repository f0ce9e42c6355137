import type { ObjectMetadata } from '../assembly/metadata.js';
import { hashText } from '../objects/hashes.js';
import { type ObjectId, type SessionId, systemPromptObjectId } from '../objects/ids.js';
import { systemPromptVersion } from '../objects/infrastructure.js';
import type { Message } from '../objects/object-type.js';
import type { Step } from '../objects/step.js';
import { SessionError } from '../session/errors.js';
import { planCall, planMessage } from '../session/plan-step.js';
import type { Resolution } from '../session/resolve-reference.js';
import { applyStep, type SessionState } from '../session/session-state.js';
import type { Verb } from '../session/verb-outcome.js';
import type { Put } from '../store/object-store.js';
import { SNAPSHOT_EVERY, toSnapshotPart } from '../store/step-part.js';
import { XtdbError } from '../xtdb/errors.js';
import { type AssembleOptions, assembleSession, type SessionAssembly } from './assemble-session.js';
import { callIdFor } from './call-id.js';
import type { CallReport, RecordedCall } from './call-report.js';
import { type LoadedObject, loadObject } from './load-object.js';
import { type HeldSession, leaseOf, reloadHeldSession } from './open-session.js';
import { planVerb } from './plan-verb.js';
import { resolveInSession } from './resolve-in-session.js';
import type { SessionEnvironment } from './session-environment.js';
import { stepFiles } from './step-files.js';
import { planStep, type StepResult, type StepWrite } from './step-write.js';
import { storedCall } from './stored-call.js';
import { headsAt, turnHeads } from './turn-heads.js';
import { appliedIds, type VerbPlan } from './verb-plan.js';

/** One content object as the pool shows it [§3.2]. */
export interface PoolEntry {
  readonly metadata: ObjectMetadata;
  readonly active: boolean;
  readonly pinned: boolean;
}

/**
 * A session at work [§3]: records what its agent does, one step at a time, each step one transaction. Calls may overlap; steps never do.
 * Nothing of a step is visible before it is committed, and a step that failed changed nothing.
 */
export class ContextSession {
  readonly id: SessionId;
  readonly #environment: SessionEnvironment;
  #held: HeldSession;
  #queue: Promise<unknown> = Promise.resolve();
  #closing: Promise<void> | undefined;
  /** Set when a write's outcome was lost: what is held may be behind what is written. */
  #uncertain = false;

  constructor(environment: SessionEnvironment, held: HeldSession) {
    this.#environment = environment;
    this.#held = held;
    this.id = held.state.id;
  }

  /** The session as of its last committed step. */
  get state(): SessionState {
    return this.#held.state;
  }

  /**
   * Records a finished tool call [§5.6, §5.7] and resolves when it is committed. Rejects with SessionError (`taken-over`, `closed`), XtdbError or
   * DocumentError; then nothing of it is written, or, where the database's answer was lost, the next step finds out.
   */
  recordCall(report: CallReport): Promise<RecordedCall> {
    return this.#serial(async () => {
      const { store, policy } = this.#environment;
      const { state } = this.#held;
      const call = await callIdFor(store, state, report.callId);
      const answer = report.answer(call);
      const files = stepFiles(report, state);
      const step = planCall(
        state,
        {
          call,
          at: this.#environment.clock(),
          ...(report.startedAt === undefined ? {} : { startedAt: report.startedAt }),
          ...(report.turnRef === undefined ? {} : { turnRef: report.turnRef }),
          answer: { sha256: hashText(answer), chars: answer.length },
          activateFiles: files.activate,
          index: files.refs,
          ...(report.plan === undefined ? {} : { verbs: { [report.plan.verb]: appliedIds(report.plan) } }),
        },
        policy,
      );
      const stored = storedCall(call, this.id, report, files.refs);
      const { result, txId } = await this.#write(step, { files: files.observations, call: stored });
      return { callId: call, answer, outcomes: result.outcomes, collapsed: collapsedBy(step, report), txId };
    });
  }

  /** Appends a message to the chat (decision B6); a user message begins a turn. */
  reportMessage(message: Message): Promise<void> {
    return this.#serial(async () => {
      const { policy, clock } = this.#environment;
      const text = message.text.toWellFormed();
      await this.#write(planMessage(this.#held.state, { ...message, text }, clock(), policy), { files: [] });
    });
  }

  /** Sets the system prompt [§2.6]; null for none. Writes nothing when it is the same. */
  setSystemPrompt(prompt: string | null): Promise<void> {
    return this.#serial(async () => {
      const text = prompt?.toWellFormed() ?? null;
      if (text === this.#held.prompt) return;
      const { store, clock } = this.#environment;
      const before = (await (await store.now()).heads([systemPromptObjectId(this.id)])).get(systemPromptObjectId(this.id));
      const validTime = new Date(Math.max(clock(), (before?.validTime.getTime() ?? 0) + 1));
      const put: Put = { version: systemPromptVersion(this.id, text), validTime };
      await this.#heads([put]);
      this.#held = { ...this.#held, prompt: text };
    });
  }

  /** The object of this session that a reference names (decision D6). */
  resolve(reference: string): Resolution {
    return resolveInSession(this.#environment, this.state, reference);
  }

  /** Decides activate, deactivate, pin or unpin for some references; reads what must be read, writes nothing. */
  planVerb(verb: Verb, references: readonly string[], signal?: AbortSignal): Promise<VerbPlan> {
    return planVerb(this.#environment, this.state, verb, references, signal);
  }

  /** A content object in full, now or as of a transaction; undefined when the database knows none by this id then. */
  load(id: ObjectId, options: { readonly version?: number } = {}): Promise<LoadedObject | undefined> {
    return loadObject(this.#environment.store, id, options.version);
  }

  /** What is known of an object that this client has met. */
  metadata(id: ObjectId): ObjectMetadata | undefined {
    return this.#environment.cache.get(id);
  }

  /** The metadata pool in its order [§3.1], with what is active and pinned. */
  pool(): readonly PoolEntry[] {
    const { state } = this;
    return state.sets.index.flatMap((id) => {
      const metadata = this.metadata(id);
      return metadata === undefined ? [] : [{ metadata, active: state.isActive(id), pinned: state.isPinned(id) }];
    });
  }

  /** The context of the next model call [§4], with the record that lets it be rebuilt (decision E7). Waits for steps under way. */
  assemble(options: AssembleOptions = {}): Promise<SessionAssembly> {
    return this.#serial(() => assembleSession(this.#environment, this.#held, options));
  }

  /** Pauses the session [§3.6]: waits for steps under way and writes the closing version of its last turn. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#serial(async () => {
      const { state, position } = this.#held;
      if (state.seq > position.upto) await this.#heads(headsAt(state, position, state.lastAt, position.epoch).puts);
    });
    return this.#closing;
  }

  /** Runs work after everything asked for before; a failure concerns its own caller only. */
  #serial<T>(work: () => Promise<T>): Promise<T> {
    if (this.#closing !== undefined)
      return Promise.reject(new SessionError('closed', `session ${this.id} is closed; open it again to go on`));
    const done = this.#queue.then(async () => {
      if (this.#uncertain) {
        this.#held = await reloadHeldSession(this.#environment, this.#held);
        this.#uncertain = false;
      }
      return work();
    });
    this.#queue = done.catch(() => undefined);
    return done;
  }

  async #write(
    step: Step,
    parts: Pick<StepWrite, 'files' | 'call'>,
  ): Promise<{ readonly result: StepResult; readonly txId: number | undefined }> {
    const { store, cache } = this.#environment;
    const { state, position, lease, indexedAtSnapshot } = this.#held;
    const after = applyStep(state, step);
    const boundary = step.opens === undefined ? undefined : turnHeads(state, after, position);
    const snapshot = step.seq % SNAPSHOT_EVERY === 0 ? toSnapshotPart(this.id, step.seq, after.sets, indexedAtSnapshot) : undefined;
    const write: StepWrite = { step, ...parts, heads: boundary?.puts ?? [], lease, ...(snapshot === undefined ? {} : { snapshot }) };
    const { result, txId } = await this.#certain(() => store.writes.write(this.id, planStep(store, write, step.at)));
    store.markStored(result.ops);
    for (const { version, marks } of result.written) cache.learn(version, marks, txId);
    this.#held = {
      ...this.#held,
      state: after,
      ...(boundary === undefined ? {} : { position: boundary.position, lease: leaseOf(boundary.puts, this.id) }),
      ...(snapshot === undefined ? {} : { indexedAtSnapshot: after.sets.index.length }),
    };
    return { result, txId };
  }

  /** Writes heads outside a step, guarded by the lease. */
  async #heads(puts: readonly Put[]): Promise<void> {
    const { store } = this.#environment;
    const { lease, position, state } = this.#held;
    const ops = [{ op: 'match', id: lease['xt/id'], doc: lease } as const, ...puts.flatMap((put) => store.putOps(put))];
    let tried = false;
    const { result } = await this.#certain(() =>
      store.writes.write(this.id, async () => {
        if (tried) return { ops: [], result: false };
        tried = true;
        return { ops, result: true };
      }),
    );
    if (!result)
      throw new SessionError(
        'taken-over',
        `session ${this.id} was continued by another writer; open it again to go on from where it stands`,
      );
    store.markStored(ops);
    if (puts.some(({ version }) => version.type === 'session')) {
      this.#held = {
        ...this.#held,
        lease: leaseOf(puts, this.id),
        position: headsAt(state, position, state.lastAt, position.epoch).position,
      };
    }
  }

  async #certain<T>(write: () => Promise<T>): Promise<T> {
    try {
      return await write();
    } catch (error) {
      if (error instanceof XtdbError) this.#uncertain = true;
      throw error;
    }
  }
}

/** What the window, not the agent, made inactive in a step. */
function collapsedBy(step: Step, { plan }: CallReport): readonly ObjectId[] {
  const asked = new Set(plan?.verb === 'deactivate' ? appliedIds(plan) : []);
  return (step.changes.deactivate ?? []).filter((id) => !asked.has(id));
}
