import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { Head } from '../../store/snapshot-rows.js';
import type { Plan, WriteOptions, Written } from '../../store/write-path.js';
import type { CurrentFile, FindAuthor } from '../decide-file.js';
import type { WrittenFile, WrittenObjects } from '../optimistic/known-versions.js';
import type { SessionWrite, WriteResult } from './session-write.js';

/** Returns the part of a database head on which the decision about a file depends. */
export function currentFile({ document, marks, validTime }: Head): CurrentFile {
  return { fileHash: document.file_hash as Sha256 | null, gone: marks.gone === true, validTime };
}

/** A write with its plan, as passed to a writer. */
export interface PlannedWrite {
  readonly write: SessionWrite;
  /** The lane of the write. Writes of one lane are applied in order. */
  readonly lane: string;
  /**
   * Resolves when the write may be planned, and rejects if it must never be. Awaited before each
   * attempt.
   */
  readonly ready: () => Promise<void>;
  readonly plan: Plan<WriteResult>;
  /**
   * Receives the result of a shared transaction. Undefined for a write with a separate transaction.
   */
  readonly shares?: ((result: WriteResult) => void) | undefined;
  /** Whether an earlier process may have applied the write. */
  readonly seen?: boolean;
}

/** A write that the database has, with its result. */
export interface WrittenOne {
  readonly write: SessionWrite;
  readonly result: WriteResult;
}

/** The result of a delivered write. */
export interface Delivered extends Written<WriteResult> {
  /** For the first write of a transaction, all its writes in order. Empty for the other writes. */
  readonly together: readonly WrittenOne[];
}

/**
 * Writes to the database for one client. It decides the order of writes, and which files need no
 * query.
 */
export interface Writer {
  /** Whether writes are acknowledged before commit although no journal holds them. */
  readonly acknowledgesAtOnce: boolean;
  /** The last file states that this client wrote or saw, if it is their only writer. */
  readonly ownFiles: OwnFiles | undefined;
  /** Finds the author of a file that changed outside of a call. Default: no version has one. */
  readonly findAuthor?: FindAuthor | undefined;
  /** Returns the lane for a lane name. */
  laneOf(name: string): string;
  write(planned: PlannedWrite, options: WriteOptions): Promise<Delivered>;
}

/** Maximum number of files that a sole writer remembers. */
const MOST_FILES = 200_000;

/**
 * The heads of files that a sole writer has observed or written, so that the database is asked once
 * per file. Heads read from the database and stubs never replace known heads, because they may be
 * older. No file is evicted. Files beyond the limit are queried each time.
 */
export class OwnFiles {
  readonly #files = new Map<ObjectId, CurrentFile>();
  readonly #most: number;

  /** `most` limits the number of remembered files. */
  constructor(most = MOST_FILES) {
    this.#most = most;
  }

  /** Returns the state of a file. Undefined if the database has to be asked. */
  get(id: ObjectId): CurrentFile | undefined {
    return this.#files.get(id);
  }

  /**
   * Learns the files that a transaction wrote or observed. Transactions that read the same file
   * arrive in order.
   */
  learn({ files, observed }: Pick<WrittenObjects, 'files' | 'observed'>): void {
    for (const file of files) this.#wrote(file);
    for (const head of observed) this.#add(head.document['xt/id'] as ObjectId, currentFile(head));
  }

  #wrote({ version, marks, validTime, onlyIfAbsent }: WrittenFile): void {
    const id = version['xt/id'];
    const file = { fileHash: version.file_hash, gone: marks.gone === true, validTime };
    if (onlyIfAbsent || !this.#files.has(id)) this.#add(id, file);
    else this.#files.set(id, file);
  }

  #add(id: ObjectId, file: CurrentFile): void {
    if (!this.#files.has(id) && this.#files.size < this.#most) this.#files.set(id, file);
  }
}
