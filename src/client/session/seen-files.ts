import { LRUCache } from 'lru-cache';
import type { ActiveObject } from '../../assembly/layout.js';
import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { ObjectId } from '../../objects/ids.js';
import { counted } from '../../values/counted.js';
import { DeferredWork } from '../../values/deferred-work.js';
import { fileObjectId } from '../file-access.js';
import { NO_MASK, type RecordMask } from '../record-mask.js';
import type { ReportedReading } from './call-report.js';

/** Maximum number of remembered files and of their UTF-16 units. */
const MOST_FILES = 512;
const MOST_CHARS = 4 * 1024 * 1024;

/** Returns the text of a reading. Undefined if there is none or it is too large to compare. */
const textOf = (reading: SourceReading): string | undefined => (reading.kind === 'text' ? reading.content : undefined);

/**
 * Remembers the version of each file that a session's agent saw last, in its calls and in delivered
 * contexts. The memory is bounded and ends with the process. A change of a file that is not
 * remembered causes no warning.
 */
export class SeenFiles {
  // Limited by size only, because the library preallocates for a maximum number of entries.
  readonly #texts = new LRUCache<ObjectId, string>({
    maxSize: MOST_CHARS,
    sizeCalculation: ({ length }) => Math.max(length, MOST_CHARS / MOST_FILES),
  });
  /**
   * Hash of the session's last write to a file. The next call may come before the write is
   * recorded.
   */
  readonly #written = new LRUCache<ObjectId, string>(counted(MOST_FILES));
  readonly #deferred = new DeferredWork();
  readonly #mask: RecordMask;

  /** `mask` is the mask of stored text: contexts show files as they are stored. */
  constructor(mask: RecordMask = NO_MASK) {
    this.#mask = mask;
  }

  /** Remembers what a call read or wrote. Forgets a file that cannot be compared. */
  read({ source, reading }: Pick<ReportedReading, 'source' | 'reading'>): void {
    // The agent's response goes first.
    this.#deferred.add(() => this.#take(fileObjectId(source), textOf(reading)));
  }

  /** Remembers a call's write as soon as it is on disk. */
  wrote(id: ObjectId, fileHash: string): void {
    this.#written.set(id, fileHash);
  }

  /** Remembers the files that a handed-out context shows. */
  context(active: readonly ActiveObject[]): void {
    this.#deferred.flush();
    for (const { metadata, content } of active) if (metadata.type === 'file') this.#take(metadata.id, content);
  }

  /**
   * Returns the text that the agent saw last and the current one, if they differ. The current text
   * then counts as seen.
   * @returns undefined if the file is as the agent saw it or as this session wrote it, is not
   *   remembered, or cannot be compared
   */
  changed(
    source: ReportedReading['source'],
    reading: SourceReading,
  ): { readonly before: string; readonly after: string } | undefined {
    this.#deferred.flush();
    const id = fileObjectId(source);
    const [before, after] = [this.#texts.get(id), textOf(reading)];
    if (before === undefined || after === undefined || before === after) return undefined;
    if (reading.kind === 'text' && reading.fileHash === this.#written.get(id)) return undefined;
    if (this.#mask.text(before) === this.#mask.text(after)) return undefined;
    this.#texts.set(id, after);
    return { before, after };
  }

  /** Returns whether a file is remembered. */
  has(id: ObjectId): boolean {
    this.#deferred.flush();
    return this.#texts.has(id);
  }

  /**
   * Forgets a file that a call is changing, because its content is unknown until the call is
   * recorded.
   */
  changing(id: ObjectId): void {
    this.#deferred.flush();
    this.#texts.delete(id);
  }

  #take(id: ObjectId, text: string | null | undefined): void {
    if (typeof text === 'string') this.#texts.set(id, text);
    else this.#texts.delete(id);
  }
}
