import type { AroundTail } from '../../assembly/around-tail.js';
import type { Assembly } from '../../assembly/assemble.js';
import type { AssemblyRecord, CallLayout, FrozenTail } from '../../assembly/assembly-record.js';
import type { EpochContext, EpochInput, EpochPlace, EpochState } from '../../assembly/epoch/epoch-state.js';
import type { MessageAssembly } from '../../assembly/render-messages.js';
import type { AbsentObjects, Delivery, HandedList, ShownAhead } from '../../objects/assembly-proof.js';
import type { SessionId } from '../../objects/ids.js';
import type { SessionState } from '../../session/session-state.js';
import type { Basis } from '../../xtdb/db-snapshot.js';

/**
 * The record of one assembly (decision E7). It suffices to rebuild the context from the database
 * alone.
 */
export interface SessionAssemblyRecord extends AssemblyRecord {
  readonly session: SessionId;
  readonly turn: number;
  /** The last included step. */
  readonly step: number;
  /** Undefined if it was assembled without the database during an outage. */
  readonly basis: Basis | undefined;
  /**
   * Objects whose shown version differs from the one at the basis. Set only for an optimistic
   * context or one without a basis (decision 0010).
   */
  readonly ahead?: readonly ShownAhead[];
  /**
   * The transaction at which all other objects have their shown version. Set only without a basis,
   * unless `ahead` names everything.
   */
  readonly aheadOf?: number;
  /** How far it is behind other writers, as in `AssemblyProof`. Absent if it is current. */
  readonly behind?: number | null;
  /** Objects in the session's sets that it could not show. Set only without a basis. */
  readonly absent?: AbsentObjects;
  /** How it reached its model. Absent until it is handed out. */
  readonly delivered?: Delivery;
  /** The whole handed-out list, if the harness mixed the context with its own messages. */
  readonly handed?: HandedList;
}

/** A context as messages with parts, with its record. */
export interface SessionMessageAssembly extends MessageAssembly {
  readonly record: SessionAssemblyRecord;
}

/** An assembled context with its record. */
export interface SessionAssembly extends Assembly {
  readonly record: SessionAssemblyRecord;
  /** Returns the same context as messages with parts (decision E3). */
  readonly asMessages: () => SessionMessageAssembly;
  /** Returns the same context around the running turn that the harness keeps. */
  readonly asAround: (tail: FrozenTail) => SessionAroundTail;
  /** The state of the session that the context shows. */
  readonly state: SessionState;
  readonly input: EpochInput;
  /**
   * Returns an epoch request with the prompt, options and place of this context (divergence E9).
   */
  readonly asEpoch: (state: EpochState, place: EpochPlace) => SessionEpochContext;
}

/** An epoch request with its record. */
export interface SessionEpochContext extends EpochContext {
  readonly record: SessionAssemblyRecord;
}

/** A context around a turn that the harness keeps, with its record. */
export interface SessionAroundTail extends AroundTail {
  readonly record: SessionAssemblyRecord;
}

/** Options of one assembly. `strict` and `shortIds` default to the client's settings. */
export interface AssembleOptions {
  readonly strict?: boolean;
  readonly shortIds?: boolean;
  /** Default: `ssot`. */
  readonly layout?: CallLayout;
  /** Whether an epoch's first text begins with a guide for the model. Default: false. */
  readonly guided?: boolean;
  /**
   * Time limit for the database, in milliseconds. After it, the context is assembled from this
   * process's knowledge. By default, only the wait for steps is limited, to two seconds.
   */
  readonly timeoutMs?: number;
  /**
   * Assembles from the optimistic view without waiting for this client's transactions, if the
   * context can be rebuilt later (decision 0010).
   */
  readonly optimistic?: boolean;
}
