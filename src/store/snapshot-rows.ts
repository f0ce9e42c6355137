import type { SessionId } from '../objects/ids.js';
import type { ObjectVersion } from '../objects/seal.js';
import type { FilesystemSource } from '../objects/source.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { ForkPoint, HeadMarks } from './head.js';
import type { VersionTimes } from './queries.js';

/** A head at a basis: the hashes and marks of a version. Long content is in parts. */
export interface Head {
  readonly document: StoredDocument;
  readonly marks: HeadMarks;
  /** Beginning of the version's valid time [decision F7]. */
  readonly validTime: Date;
}

/** A version at a basis with the marks of its head. */
export interface FoundVersion {
  readonly version: ObjectVersion;
  readonly marks: HeadMarks;
}

/**
 * The head of one version in an object's history. `document` is undefined if the entity was deleted
 * from the database.
 */
export interface HistoryHead extends VersionTimes {
  /** Counts from 1, in the order of valid time. */
  readonly number: number;
  readonly document: StoredDocument | undefined;
  readonly marks: HeadMarks;
}

/** A step, and its acknowledgement in milliseconds since 1970. */
export interface RunningStep {
  readonly seq: number;
  readonly at: number;
}

/** The data of a session that its heads have, without its steps. */
export interface StoredSession {
  readonly id: SessionId;
  readonly turns: number;
  /** The last step that the head includes (decision G4). */
  readonly upto: number;
  /** Beginning of the head's valid time. */
  readonly validTime: Date;
  readonly parent: ForkPoint | undefined;
  /**
   * The folders of the clients that have opened the session. Undefined if they were not recorded
   * or not wanted.
   */
  readonly roots: readonly FilesystemSource[] | undefined;
  /**
   * The last step beyond the head, of a turn that runs. Null if there is none. Undefined if it was
   * not read.
   */
  readonly running?: RunningStep | null;
}
