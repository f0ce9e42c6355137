import type { ObjectId, SessionId, Sha256 } from './ids.js';
import type { FilesystemSource } from './source.js';

/** How a context reached its model (decision E7). */
export type Delivery = 'library' | 'http' | 'pi' | 'opencode' | 'replay';

/** A whole list of messages as a harness handed it over, where it mixed a context with messages of its own: hash and length of its canonical JSON. */
export interface HandedList {
  readonly sha256: Sha256;
  /** UTF-16 units of the canonical JSON. */
  readonly chars: number;
  readonly messages: number;
}

/** Length in UTF-16 units and hash of one section of a context [§4.1]. */
export interface SectionProof {
  readonly name: string;
  readonly chars: number;
  readonly sha256: Sha256;
}

/** A mapping by which the agent's paths were shown [§5.3]. */
export interface ShownMount {
  readonly agentPrefix: string;
  readonly canonicalPrefix: string;
  readonly filesystemId: string;
}

/** A version that a context showed and that its basis does not have yet, or has another one of. */
export interface ShownAhead {
  readonly id: ObjectId;
  readonly object_hash: Sha256;
  readonly gone?: true;
}

/**
 * What the database keeps of an assembly that was handed out (decision E7): enough to rebuild it and to check that it is the same. What was in it
 * is derived from its basis, not stored again.
 */
export interface AssemblyProof {
  readonly session: SessionId;
  readonly turn: number;
  /** The last step that it includes. */
  readonly step: number;
  /** Renderer and layout by name; a later version may know more of them. */
  readonly renderer: string;
  readonly layout: string;
  /** Version of the renderer's output. */
  readonly version: number;
  readonly options: { readonly strict: boolean; readonly shortIds: boolean };
  /** What the harness kept of its own list: a turn of the chat, and the calls whose results stand in it; absent where it kept nothing. */
  readonly tail?: { readonly turn: number; readonly results: readonly ObjectId[] };
  /** Without empty ones. */
  readonly sections: readonly SectionProof[];
  /** How many blocks of active content there are. */
  readonly blocks: number;
  readonly chars: number;
  readonly sha256: Sha256;
  /** What was read: valid time in milliseconds since 1970, and transaction. Null: assembled while the database was away; then it is read at the transaction that wrote its step. */
  readonly basis: { readonly validTime: number; readonly txId: number } | null;
  /**
   * Present on a context that was assembled without waiting for transactions (decision 0010): it includes every step up to `step`, whether or not the basis
   * holds them, and shows these objects in these versions. A basis of null then means that nothing was read: every file and the prompt are named here.
   */
  readonly ahead?: readonly ShownAhead[];
  /** By which mappings paths were shown; absent for none. */
  readonly mounts?: readonly ShownMount[];
  /** The folders whose files were shown; absent where none of the session's files was left out. */
  readonly folders?: readonly FilesystemSource[];
  readonly delivered: Delivery;
  readonly handed?: HandedList;
  /** The session that it was handed out of, where that was taken over and its steps were put into this one, with other ids for its calls (decision F6). */
  readonly rescuedFrom?: SessionId;
  /** When it was handed out, milliseconds since 1970. */
  readonly at: number;
}
