import { renameSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { systemCode } from '../process/system-code.js';
import { segmentFile } from './journal-folder.js';
import { SegmentFile } from './segment-file.js';
import { encodeSegmentHeader } from './segment-header.js';

/** The files of one journal: at most one that is written, and older ones that go as soon as nothing waits in them. */
export class SegmentChain {
  readonly folder: string;
  readonly owner: string;
  readonly #segmentBytes: number;
  readonly #older: Set<number>;
  readonly #damaged: ReadonlySet<number>;
  #current: SegmentFile | undefined;
  #newest: number;

  constructor(folder: string, owner: string, segmentBytes: number, segments: readonly number[], damaged: ReadonlySet<number>) {
    this.folder = folder;
    this.owner = owner;
    this.#segmentBytes = segmentBytes;
    this.#older = new Set(segments);
    this.#damaged = damaged;
    this.#newest = Math.max(0, ...segments);
  }

  get current(): SegmentFile | undefined {
    return this.#current;
  }

  get isEmpty(): boolean {
    return this.#current === undefined && this.#older.size === 0;
  }

  /** The file to write to; a new one after the last has grown to its size. Throws what the system throws. */
  writable(nextSequence: number): SegmentFile {
    if (this.#current !== undefined && this.#current.size >= this.#segmentBytes) this.retire();
    if (this.#current !== undefined) return this.#current;
    // A number is never used twice, also when making its file failed half-way.
    const segment = ++this.#newest;
    const header = encodeSegmentHeader({ owner: this.owner, segment, first: nextSequence, at: Date.now() });
    this.#current = SegmentFile.create(this.folder, segmentFile(this.owner, segment), segment, header);
    return this.#current;
  }

  /** Writes no more to the current file. */
  retire(): void {
    if (this.#current === undefined) return;
    this.#current.close();
    this.#older.add(this.#current.segment);
    this.#current = undefined;
  }

  /**
   * Removes the files that are not needed and gives their numbers; damaged ones are kept aside under another name. The newest file stays until all others
   * are gone, since it says what in them is done.
   */
  trim(isNeeded: (segment: number) => boolean): readonly number[] {
    const removed: number[] = [];
    for (const segment of this.#older) {
      if (isNeeded(segment) || (segment === this.#newest && this.#older.size > 1)) continue;
      const path = join(this.folder, segmentFile(this.owner, segment));
      try {
        if (this.#damaged.has(segment)) renameSync(path, `${path}.damaged`);
        else unlinkSync(path);
      } catch (error) {
        // What stays holds nothing that waits; the next trim or the next process removes it.
        if (systemCode(error) !== 'ENOENT') continue;
      }
      this.#older.delete(segment);
      removed.push(segment);
    }
    return removed;
  }
}
