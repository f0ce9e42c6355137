import type { CurrentFile } from '../../indexing/decide-file.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { Head } from '../../store/store-snapshot.js';
import type { Plan, WriteOptions, WritePath, Written } from '../../store/write-path.js';
import type { WrittenFile, WrittenObjects } from '../optimistic/known-versions.js';
import type { SessionWrite, WriteResult } from './session-write.js';

/** What indexing decides by, of a head in the database. */
export function currentFile({ document, marks, validTime }: Head): CurrentFile {
  return { fileHash: document.file_hash as Sha256 | null, gone: marks.gone === true, validTime };
}

/** A write with its plan, as a writer takes it. */
export interface PlannedWrite {
  readonly write: SessionWrite;
  /** The lane of the write: writes of one lane are applied in their order. */
  readonly lane: string;
  /** Resolves when the write may be planned, awaited before each attempt; rejects when it never may. */
  readonly ready: () => Promise<void>;
  readonly plan: Plan<WriteResult>;
  /** How the write is told what a transaction decided that it shared with others; undefined for a write that has one of its own. */
  readonly shares?: ((result: WriteResult) => void) | undefined;
  /** Whether an earlier process may have applied the write. */
  readonly seen?: boolean;
}

/** A write that the database has, with what came of it. */
export interface WrittenOne {
  readonly write: SessionWrite;
  readonly result: WriteResult;
}

/** What became of a write. */
export interface Delivered extends Written<WriteResult> {
  /** All writes of its transaction in their order, for the first of them; none for those that came with it. */
  readonly together: readonly WrittenOne[];
}

/** How the writes of one client reach the database: what they wait for, and what is known of their files without asking. */
export interface Writer {
  /** Whether writes are acknowledged before they are committed although no journal holds them. */
  readonly acknowledgesAtOnce: boolean;
  /** The files as this client left them, where nobody else writes them. */
  readonly ownFiles: OwnFiles | undefined;
  /** The lane that writes of a lane by name go in. */
  laneOf(name: string): string;
  write(planned: PlannedWrite, options: WriteOptions): Promise<Delivered>;
}

/** The plan of a write that waits for its readiness before each attempt. */
function whenReady({ ready, plan }: Pick<PlannedWrite, 'ready' | 'plan'>): Plan<WriteResult> {
  return async (attempt) => {
    await ready();
    return plan(attempt);
  };
}

/** Bounds the files that a sole writer remembers. */
const MOST_FILES = 200_000;

/**
 * The heads of the files that a sole writer has observed or written, as far as its next decision needs them, so that the database is asked once for each
 * file. What was read from the database, and a stub, never replaces what is known: it may be older. Nothing is ever forgotten; once it is full, further
 * files are asked for again and again.
 */
export class OwnFiles {
  readonly #files = new Map<ObjectId, CurrentFile>();
  readonly #most: number;

  /** `most` bounds how many files are remembered. */
  constructor(most = MOST_FILES) {
    this.#most = most;
  }

  /** The state of a file; undefined where the database has to be asked. */
  get(id: ObjectId): CurrentFile | undefined {
    return this.#files.get(id);
  }

  /** Takes in what a transaction wrote and what it was decided by; transactions that read the same file come in their order. */
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

/** The one lane of a sole writer. */
const ONLY_LANE = '.all';

/**
 * The writer of a client whose sessions and files nobody else writes, as in a replay. It asks the database for a file once, and puts the writes of all sessions into one
 * lane, so that what this process knew at any moment is what the database knew after that moment's transaction. Pipelined, no write waits for the outcome
 * of the one before.
 */
export class SoleWriter implements Writer {
  readonly acknowledgesAtOnce: boolean;
  readonly ownFiles = new OwnFiles();
  readonly #writes: WritePath;

  /** `pipelined` for a client without a journal: then nothing of a write outlives the process anyway. */
  constructor(writes: WritePath, options: { readonly pipelined: boolean }) {
    this.#writes = writes;
    this.acknowledgesAtOnce = options.pipelined;
  }

  laneOf(): string {
    return ONLY_LANE;
  }

  async write(planned: PlannedWrite, options: WriteOptions): Promise<Delivered> {
    const { txId, result } = await this.#write(whenReady(planned), options);
    return { txId, result, together: [{ write: planned.write, result }] };
  }

  async #write(plan: Plan<WriteResult>, options: WriteOptions): Promise<Written<WriteResult>> {
    if (this.acknowledgesAtOnce && options.persistent === true) {
      const { onOutage } = options;
      const onSubmitted = (result: WriteResult): void => this.ownFiles.learn(result);
      return this.#writes.pipeline(ONLY_LANE, plan, onOutage === undefined ? { onSubmitted } : { onSubmitted, onOutage });
    }
    const written = await this.#writes.write(ONLY_LANE, plan, options);
    this.ownFiles.learn(written.result);
    return written;
  }
}
