import type { CurrentFile } from '../../indexing/decide-file.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { Head } from '../../store/store-snapshot.js';
import type { WrittenFile } from '../delivery/session-write.js';

/** What indexing decides by, of a head in the database. */
export function currentFile({ document, marks, validTime }: Pick<Head, 'document' | 'marks' | 'validTime'>): CurrentFile {
  return { fileHash: document.file_hash as Sha256 | null, gone: marks.gone === true, validTime };
}

const MOST = 200_000;

/**
 * The heads of the files that a sole writer has met or written, as far as its next decision needs them, so that the database is asked once for each file.
 * Only for a client beside which nobody writes those files. What was read from the database, and a stub, never replaces what is known: it may be older.
 * Nothing is ever forgotten; once it is full, further files are asked for again and again.
 */
export class OwnHeads {
  readonly #files = new Map<ObjectId, CurrentFile>();
  readonly #most: number;

  /** `most` bounds how many files are remembered. */
  constructor(most: number = MOST) {
    this.#most = most;
  }

  /** What stands there; undefined where the database has to be asked. */
  get(id: ObjectId): CurrentFile | undefined {
    return this.#files.get(id);
  }

  /** Takes in heads that the database had when it was asked. */
  met(heads: readonly Head[]): void {
    for (const head of heads) this.#add(head.document['xt/id'] as ObjectId, currentFile(head));
  }

  /** Takes in what a transaction wrote; those that read the same file are told in their order. */
  wrote(files: readonly WrittenFile[]): void {
    for (const { version, marks, validTime, onlyIfAbsent } of files) {
      const id = version['xt/id'];
      const file = { fileHash: version.file_hash, gone: marks.gone === true, validTime };
      if (onlyIfAbsent || !this.#files.has(id)) this.#add(id, file);
      else this.#files.set(id, file);
    }
  }

  #add(id: ObjectId, file: CurrentFile): void {
    if (!this.#files.has(id) && this.#files.size < this.#most) this.#files.set(id, file);
  }
}
