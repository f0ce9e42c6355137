import { closeSync, fdatasync, fstatSync, ftruncateSync, openSync, unlinkSync, writevSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { systemCode } from '../process/system-error.js';
import { frameSalt } from './frame.js';
import { segmentFile } from './journal-folder.js';
import { encodeSegmentHeader, type SegmentHeader } from './segment-format.js';

/**
 * Writes all parts, repeatedly if needed: an almost full disk accepts some bytes before it fails.
 */
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

/** A journal file open for writing. Frames are appended whole or not at all. */
export class SegmentFile {
  readonly path: string;
  /** The initial value of its frame checksums. */
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

  /**
   * Creates a file in `folder` for this user only. A failed attempt leaves nothing. Throws system
   * errors.
   */
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

  /** Whether the file still has a name. Records in a deleted one would be lost. */
  get isLinked(): boolean {
    return fstatSync(this.#fd).nlink > 0;
  }

  /** Appends to the file. Throws system errors; then call `rollBack` with the previous size. */
  write(parts: readonly Uint8Array[]): void {
    this.#size += writeFully(this.#fd, parts, this.#size);
  }

  /** Truncates the file to `size`. */
  rollBack(size: number): void {
    ftruncateSync(this.#fd, size);
    this.#size = size;
  }

  /** Resolves once the written bytes survive a power loss. */
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

/** Initial state of a chain. */
export interface SegmentChainOptions {
  readonly folder: string;
  /** The journal's name. */
  readonly owner: string;
  /** Size in bytes at which a new file begins. */
  readonly segmentBytes: number;
  /** Numbers of the existing files, in order. */
  readonly segments: readonly number[];
}

/**
 * The files of one journal: at most one open for writing, and older ones. An older file is removed
 * once it has no waiting records.
 */
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

  /**
   * Returns the file to write to. Creates a new one if the last has reached its size. Throws system
   * errors.
   */
  writable(nextSequence: number): SegmentFile {
    if (this.#current !== undefined && this.#current.size >= this.#segmentBytes) this.retire();
    if (this.#current !== undefined) return this.#current;
    // Numbers are never reused, not even after a failed creation.
    const segment = ++this.#newest;
    this.#current = SegmentFile.create(this.folder, { owner: this.owner, segment, first: nextSequence });
    return this.#current;
  }

  /** Stops writing to the current file. */
  retire(): void {
    if (this.#current === undefined) return;
    this.#current.close();
    this.#older.add(this.#current.segment);
    this.#current = undefined;
  }

  /**
   * Removes unneeded files and returns their numbers. The newest file is kept until all others are
   * gone, because it records which of their records are done.
   */
  trim(isNeeded: (segment: number) => boolean): readonly number[] {
    const removed: number[] = [];
    for (const segment of this.#older) {
      if (isNeeded(segment) || (segment === this.#newest && this.#older.size > 1)) continue;
      const path = join(this.folder, segmentFile(this.owner, segment));
      try {
        unlinkSync(path);
      } catch (error) {
        // The file has no waiting records; the next trim or the next process removes it.
        if (systemCode(error) !== 'ENOENT') continue;
      }
      this.#older.delete(segment);
      removed.push(segment);
    }
    return removed;
  }
}
