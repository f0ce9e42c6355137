import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import type { Resolution } from '../../session/object-reference.js';
import type { SessionState } from '../../session/session-state.js';
import type { Verb } from '../../session/verb-outcome.js';
import { assembleAsOf } from './assemble-session.js';
import { type CallReport, type RecordedCall, readingsOf, type VerbPlan } from './call-report.js';
import { type LoadedObject, loadObject, type PoolEntry, poolOf, resolveInSession } from './find-object.js';
import { type LoadedSession, readSession } from './open-session.js';
import { planVerb } from './plan-verb.js';
import { SeenFiles } from './seen-files.js';
import type { AssembleOptions, SessionAssembly } from './session-assembly.js';
import type { SessionEnvironment } from './session-environment.js';

/**
 * A session that another process writes. An agent's call is answered here, and the writer records
 * it from the agent's own record. Nothing is written here, so the call becomes one step.
 */
export class ViewedSession {
  readonly id: SessionId;
  /** The file versions that the agent saw last in the calls that were answered here. */
  readonly seen: SeenFiles;
  readonly #environment: SessionEnvironment;
  #loaded: LoadedSession;

  private constructor(environment: SessionEnvironment, loaded: LoadedSession) {
    this.#environment = environment;
    this.#loaded = loaded;
    this.id = loaded.state.id;
    this.seen = new SeenFiles(environment.mask);
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

  /** Returns the session's object for a reference (decision D6). */
  readonly resolve = (reference: string): Resolution => resolveInSession(this.#environment, this.state, reference);

  /** Plans a verb for some references. Reads the necessary files. */
  planVerb(verb: Verb, references: readonly string[], signal?: AbortSignal): Promise<VerbPlan> {
    return planVerb(this.#environment, this.state, { verb, references, signal });
  }

  /** Loads a whole object, now or as of a transaction. Undefined if it did not exist then. */
  load(id: ObjectId, options: { readonly version?: number } = {}): Promise<LoadedObject | undefined> {
    return loadObject(this.#environment, id, options.version);
  }

  /** Returns the metadata of an object of the session. */
  metadata(id: ObjectId): ObjectMetadata | undefined {
    return this.#environment.metadata.get(id);
  }

  /** Returns the metadata pool in its order [§3.1]. */
  pool(): readonly PoolEntry[] {
    return poolOf({ state: this.state, metadata: (id) => this.metadata(id) });
  }

  /** Returns the context that the session would have [§4]. No record of it is kept. */
  async assemble(options: AssembleOptions = {}): Promise<SessionAssembly> {
    const made = await assembleAsOf(this.#environment, { session: this.id, basis: {} }, options);
    if (made !== undefined) return made;
    throw new SessionError('unknown-session', `session ${this.id} is no longer in the database; call again`);
  }

  /** Returns the answer of a finished call. The id is the agent's, or empty if it gave none. */
  async recordCall(report: CallReport): Promise<Omit<RecordedCall, 'applied'>> {
    for (const reading of readingsOf(report)) this.seen.read(reading);
    const callId = (report.callId ?? '') as ObjectId;
    return { callId, answer: report.answer(callId), collapsed: [] };
  }
}
