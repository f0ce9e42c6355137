import { closeSync, fdatasync, ftruncateSync, openSync, unlinkSync, writevSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemCode } from '../process/system-error.js';
import { frameSalt } from './frame.js';
import { segmentFile } from './journal-folder.js';
import { encodeSegmentHeader, type SegmentHeader } from './segment-format.js';

/** Writes all of it: a disk that is almost full takes a part first and refuses the rest. */
function writeFully(fd: number, parts: readonly Uint8Array[], position: number): number {
  let rest = parts;
  let at = position;
  for (;;) {
    let written = writevSync(fd, rest, at);
    at += written;
    const left: Uint8Array[] = [];
    for (const part of rest) {
      if (written < part.length) left.push(written === 0 ? part : part.subarray(written));
      written = Math.max(0, written - part.length);
    }
    if (left.length === 0) return at - position;
    rest = left;
  }
}

/** One journal file that is being written; frames are put at its end, whole or not at all. */
export class SegmentFile {
  readonly path: string;
  /** What the checksums of its frames start from. */
  readonly salt: number;
  readonly segment: number;
  readonly #fd: number;
  #size: number;
  #closed = false;

  private constructor({ name, ...file }: { path: string; name: string; segment: number; fd: number; size: number }) {
    this.path = file.path;
    this.salt = frameSalt(name);
    this.segment = file.segment;
    this.#fd = file.fd;
    this.#size = file.size;
  }

  /** Makes a file in `folder`, for the user alone; nothing is left of it when that fails. Throws what the system throws. */
  static create(folder: string, { owner, segment, first }: Omit<SegmentHeader, 'at'>): SegmentFile {
    const name = segmentFile(owner, segment);
    const path = join(folder, name);
    const fd = openSync(path, 'wx', 0o600);
    try {
      const size = writeFully(fd, [encodeSegmentHeader({ owner, segment, first, at: Date.now() })], 0);
      return new SegmentFile({ path, name, segment, fd, size });
    } catch (error) {
      closeSync(fd);
      unlinkSync(path);
      throw error;
    }
  }

  /** Its length in bytes. */
  get size(): number {
    return this.#size;
  }

  /** Writes at the end. Throws what the system throws; then `rollBack` must be called with the size before. */
  write(parts: readonly Uint8Array[]): void {
    this.#size += writeFully(this.#fd, parts, this.#size);
  }

  /** Cuts everything beyond a length off. */
  rollBack(size: number): void {
    ftruncateSync(this.#fd, size);
    this.#size = size;
  }

  /** Resolves when what was written outlives a loss of power. */
  sync(): Promise<void> {
    return promisify(fdatasync)(this.#fd);
  }

  /** Idempotent. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#fd);
  }
}

/** What a chain begins with. */
export interface SegmentChainOptions {
  readonly folder: string;
  /** The journal's name. */
  readonly owner: string;
  /** A file that has grown to this size is followed by a new one. */
  readonly segmentBytes: number;
  /** The numbers of the files that are there, in order. */
  readonly segments: readonly number[];
}

/** The files of one journal: at most one that is written, and older ones that go as soon as nothing waits in them. */
export class SegmentChain {
  readonly folder: string;
  readonly owner: string;
  readonly #segmentBytes: number;
  readonly #older: Set<number>;
  #current: SegmentFile | undefined;
  #newest: number;

  constructor({ folder, owner, segmentBytes, segments }: SegmentChainOptions) {
    this.folder = folder;
    this.owner = owner;
    this.#segmentBytes = segmentBytes;
    this.#older = new Set(segments);
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
    this.#current = SegmentFile.create(this.folder, { owner: this.owner, segment, first: nextSequence });
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
   * Removes the files that are not needed and gives their numbers. The newest file stays until all others are gone, since it says what in them is done.
   */
  trim(isNeeded: (segment: number) => boolean): readonly number[] {
    const removed: number[] = [];
    for (const segment of this.#older) {
      if (isNeeded(segment) || (segment === this.#newest && this.#older.size > 1)) continue;
      const path = join(this.folder, segmentFile(this.owner, segment));
      try {
        unlinkSync(path);
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
