import { LRUCache } from 'lru-cache';
import type { ActiveObject } from '../../assembly/layout.js';
import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { ObjectId } from '../../objects/ids.js';
import { counted } from '../../values/counted.js';
import { PutOff } from '../../values/put-off.js';
import { fileObjectId } from '../file-access.js';
import type { ReportedReading } from './call-report.js';

/** How many files are remembered, and how many UTF-16 units of them. */
const MOST_FILES = 512;
const MOST_CHARS = 4 * 1024 * 1024;

/** The text of a file as it was read; undefined for one that has none or is too large to be compared. */
const textOf = (reading: SourceReading): string | undefined => (reading.kind === 'text' ? reading.content : undefined);

/**
 * What the agent of a session saw last of each file: by its calls, and in the contexts that were handed out. Bounded, and not kept beyond the process: of a file
 * that is not remembered nobody is warned.
 */
export class SeenFiles {
  // Counted by size alone: the library makes room for a number of entries at once.
  readonly #texts = new LRUCache<ObjectId, string>({
    maxSize: MOST_CHARS,
    sizeCalculation: ({ length }) => Math.max(length, MOST_CHARS / MOST_FILES),
  });
  /** The hash of what this session wrote last to a file. The next call may come before the write is recorded. */
  readonly #written = new LRUCache<ObjectId, string>(counted(MOST_FILES));
  readonly #late = new PutOff();

  /** Takes what a call read or wrote; what cannot be compared is forgotten. */
  read({ source, reading }: Pick<ReportedReading, 'source' | 'reading'>): void {
    // The answer that the agent waits for goes first.
    this.#late.add(() => this.#take(fileObjectId(source), textOf(reading)));
  }

  /** Takes what a call wrote, as soon as it stands on the disk. */
  wrote(id: ObjectId, fileHash: string): void {
    this.#written.set(id, fileHash);
  }

  /** Takes what a context that was handed out shows of files. */
  context(active: readonly ActiveObject[]): void {
    this.#late.now();
    for (const { metadata, content } of active) if (metadata.type === 'file') this.#take(metadata.id, content);
  }

  /**
   * The text that the agent saw last where a file has another one now. What it is told then it has seen.
   * @returns undefined where the file is as it was seen or as this session wrote it, or not remembered, or cannot be compared
   */
  changed(source: ReportedReading['source'], reading: SourceReading): { readonly before: string; readonly after: string } | undefined {
    this.#late.now();
    const id = fileObjectId(source);
    const [before, after] = [this.#texts.get(id), textOf(reading)];
    if (before === undefined || after === undefined || before === after) return undefined;
    if (reading.kind === 'text' && reading.fileHash === this.#written.get(id)) return undefined;
    this.#texts.set(id, after);
    return { before, after };
  }

  /** Whether a file is remembered. */
  has(id: ObjectId): boolean {
    this.#late.now();
    return this.#texts.has(id);
  }

  /** Of a file that is being changed nobody knows what it says until its call is recorded. */
  changing(id: ObjectId): void {
    this.#late.now();
    this.#texts.delete(id);
  }

  #take(id: ObjectId, text: string | null | undefined): void {
    if (typeof text === 'string') this.#texts.set(id, text);
    else this.#texts.delete(id);
  }
}
