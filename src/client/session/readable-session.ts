import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Resolution } from '../../session/object-reference.js';
import type { SessionState } from '../../session/session-state.js';
import type { Verb } from '../../session/verb-outcome.js';
import type { VerbPlan } from './call-report.js';
import { type LoadedObject, loadObject, type PoolEntry, poolOf, resolveInSession } from './find-object.js';
import { planVerb } from './plan-verb.js';
import { SeenFiles } from './seen-files.js';
import type { SessionEnvironment } from './session-environment.js';

/** The part of a session that a call reads. This or another process writes the session. */
export abstract class ReadableSession {
  readonly id: SessionId;
  /** The file versions that the agent saw last in calls that this process answered. */
  readonly seen: SeenFiles;
  readonly #environment: SessionEnvironment;

  protected constructor(environment: SessionEnvironment, id: SessionId) {
    this.#environment = environment;
    this.id = id;
    this.seen = new SeenFiles(environment.mask);
  }

  /** The session after the last step that is known here. */
  abstract get state(): SessionState;

  /** Returns the session's object for a reference (decision D6). */
  readonly resolve = (reference: string): Resolution => resolveInSession(this.#environment, this.state, reference);

  /** Plans a verb for some references. Reads the necessary files and writes nothing. */
  planVerb(verb: Verb, references: readonly string[], signal?: AbortSignal): Promise<VerbPlan> {
    return planVerb(this.#environment, this.state, { verb, references, signal });
  }

  /** Loads a whole object, now or as of a transaction. Undefined if it did not exist then. */
  load(id: ObjectId, options: { readonly version?: number } = {}): Promise<LoadedObject | undefined> {
    return loadObject(this.#environment, id, options.version);
  }

  /** Returns the known metadata of an object that this client has observed. */
  metadata(id: ObjectId): ObjectMetadata | undefined {
    return this.#environment.metadata.get(id);
  }

  /** Returns the metadata pool in its order [§3.1], with the active and pinned state. */
  pool(): readonly PoolEntry[] {
    return poolOf({ state: this.state, metadata: (id) => this.metadata(id) });
  }
}
