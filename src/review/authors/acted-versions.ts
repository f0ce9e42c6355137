import type { LineRange } from '../../history/rebuild/call-names.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import type { SessionCall } from '../ask/session-calls.js';

/** The author of a file version, as far as the database shows it. */
export interface VersionActor {
  readonly kind: 'agent' | 'person' | 'git' | 'editor' | 'unknown';
  readonly session?: SessionId;
  readonly turn?: number;
  /** The step that wrote the version, that first saw it, or after which it was written. */
  readonly step?: number;
  readonly call?: ObjectId;
  readonly name?: string;
  /** The commit that the version belongs to, for git. */
  readonly commit?: string;
  /** A sentence with the evidence. */
  readonly why: string;
}

/** A version of a file with its author. */
export interface ActedVersion {
  readonly number: number;
  readonly validTime: Date;
  readonly txId: number;
  /** Whether there is no previous version, or only a stub. */
  readonly isFirst: boolean;
  /**
   * The number of the version that this one restores: the last earlier one with the same text, if a
   * version between them differs.
   */
  readonly back: number | undefined;
  readonly by: VersionActor;
}

/** A change of a file that has no version, because its text is not known. */
export interface UnrecordedChange {
  readonly step: Step;
  /** False for a command that names the file but may not have changed it, such as a formatter. */
  readonly isSure: boolean;
  readonly by: VersionActor;
}

/** A call of a session that named a file. */
export interface FileCall {
  readonly step: Step;
  readonly call: SessionCall;
  /** Whether it changed the file, or tried to: by its tool or by a command that names the file. */
  readonly changes: boolean;
  /** Whether it changed the file. If its result is not recorded, a later text shows it. */
  readonly isMade: boolean;
  /** The lines that it read. Undefined if it read all lines or none. */
  readonly lines: LineRange | undefined;
}

/** The known facts about a file before a call that changes it, or tries to. */
export interface BeforeCall {
  readonly name: string;
  /** All versions of the file. */
  readonly versions: readonly ActedVersion[];
  /** The last step of the request that the call answers. */
  readonly request: number;
  /** The earlier calls whose texts of the file the agent had, in order. */
  readonly shown: readonly FileCall[];
  /** The version that the last of them showed, with its step. */
  readonly seen: (ActedVersion & { readonly step: number }) | undefined;
  /** The version on the disk. */
  readonly was: ActedVersion | undefined;
  /** The changes after the version that the agent had seen, without a recorded text. */
  readonly lost: readonly UnrecordedChange[];
}

/** A file whose text the agent had before a call. */
export interface SeenFile {
  readonly object: ObjectId;
  readonly name: string;
  /** The version that the last of these calls showed. */
  readonly version: number | undefined;
  /** The calls whose texts of the file the agent had, in order. */
  readonly shown: readonly FileCall[];
}

/** A call that changed a file whose newest version the agent had not seen. */
export interface StaleCall {
  readonly step: Step;
  readonly call: SessionCall;
  readonly object: ObjectId;
  /** The version that the agent had seen, and the step that saw it. */
  readonly seen: ActedVersion & { readonly step: number };
  /** The version that it changed. */
  readonly was: ActedVersion;
}

/** A file whose earlier text a command restored. */
export interface PutBackFile {
  readonly object: ObjectId;
  /** The version with the earlier text. */
  readonly version: ActedVersion;
}
