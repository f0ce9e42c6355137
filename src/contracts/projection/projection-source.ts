import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { Json } from '../../objects/canonical-json.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import type { SessionSets } from '../../objects/sets.js';
import type { FilesystemSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import type { ApprovalState, ProjectionBasis } from './entry.js';
import type { StoredCall } from './measured-entries.js';

/**
 * A call that a message of the model announced and whose result is not recorded. It is known only
 * if a record of the call was stored.
 */
export interface PendingCall {
  readonly native: string;
  readonly tool: string;
  readonly args: Json;
  /** The step of the message with the call, or the last step before it. */
  readonly by: number;
  readonly at: number;
}

/** An approval as its records state it: its position and its state. */
export interface ApprovalNote {
  readonly approval: string;
  readonly state: ApprovalState;
  readonly text: string;
  readonly tool?: string;
  readonly native?: string;
  readonly reason?: string;
  readonly turn: number;
  /** The last step before the request. */
  readonly seq: number;
  readonly at: number;
}

/** A file of the session's index. */
export interface ProjectedFile {
  readonly metadata: ObjectMetadata<'file'>;
  readonly source: FilesystemSource;
  readonly active: boolean;
  readonly pinned: boolean;
  /** The text of an active or pinned file; null if it has none. Undefined if not read. */
  readonly content: string | null | undefined;
}

/** The version of an object that a projection contains. */
export interface SourceVersion {
  readonly objectHash: Sha256;
  /** Beginning of its valid time in milliseconds since 1970. */
  readonly validTime: number;
}

/** The input of a projection, all at one basis. */
export interface ProjectionSource {
  readonly session: SessionId;
  readonly basis: ProjectionBasis;
  readonly prompt: { readonly text: string; readonly at: number } | undefined;
  /** All steps from the first, without gaps. */
  readonly steps: readonly Step[];
  readonly sets: SessionSets;
  readonly calls: ReadonlyMap<ObjectId, StoredCall>;
  readonly files: readonly ProjectedFile[];
  readonly versions: ReadonlyMap<ObjectId, SourceVersion>;
  readonly pending: readonly PendingCall[];
  readonly approvals: readonly ApprovalNote[];
}
