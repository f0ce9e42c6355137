import type { FileObservation } from '../../indexing/decide-file.js';
import type { IndexOutcome } from '../../indexing/outcome.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { Step } from '../../objects/step.js';
import type { HeadMarks } from '../../store/head.js';
import type { StoredPut } from '../../store/object-store.js';
import type { Head } from '../../store/store-snapshot.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { TxOp } from '../../xtdb/transactions.js';

/**
 * Everything that one step of work on a session wants written (decision F3): plain data, acknowledged as it is and decided against the database only
 * when it is applied (decision F6). Without a `step` it only moves heads: a session that begins, is taken over, or pauses; a changed prompt.
 */
export interface SessionWrite {
  readonly session: SessionId;
  /**
   * The session's head as this writer left it, the guard of its lease (decision F5); null where the session must not exist yet. Absent where only files
   * are indexed, on behalf of no session: a tracker's event, a resume [§5.6].
   */
  readonly lease?: StoredDocument | null;
  readonly step?: Step;
  readonly call?: { readonly version: ObjectVersion<'toolcall'>; readonly wholeText?: { readonly hash: Sha256; readonly text: string } };
  readonly files: readonly FileObservation[];
  /** The versions of chat, session and prompt that this write brings forth. */
  readonly heads: readonly StoredPut[];
  readonly snapshot?: StoredDocument;
  /** A context that was handed out (decision E7): always a write of its own, with nothing else. */
  readonly assembly?: AssemblyProof;
  /** Moment of acknowledgement, milliseconds since 1970. */
  readonly at: number;
}

/** A version with the store's marks. */
export interface MarkedVersion {
  readonly version: ObjectVersion;
  readonly marks: HeadMarks;
  /** The whole text where `content` holds only head and tail of it and it is at hand. */
  readonly wholeText?: () => string;
}

/** A version of a file that a plan writes; `onlyIfAbsent` where nothing may stand there yet. */
export interface WrittenFile extends MarkedVersion {
  readonly validTime: Date;
  readonly onlyIfAbsent: boolean;
}

/** What became of a write once the database has it. */
export interface WriteResult {
  /** What indexing did to each file [§5.6]. */
  readonly outcomes: ReadonlyMap<ObjectId, IndexOutcome>;
  /** The versions that were written. */
  readonly written: readonly MarkedVersion[];
  /** Those of them that are files. */
  readonly files: readonly WrittenFile[];
  /** The heads of files that were there already and stayed as they were. */
  readonly met: readonly Head[];
  /** The transaction that `met` was read at. */
  readonly metAt: number | undefined;
  readonly ops: readonly TxOp[];
}
