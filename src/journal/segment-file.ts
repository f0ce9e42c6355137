import { closeSync, fdatasync, ftruncateSync, openSync, unlinkSync, writevSync } from 'node:fs';
import { promisify } from 'node:util';
import { frameSalt } from './frame.js';

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

  private constructor(path: string, name: string, segment: number, fd: number, size: number) {
    this.path = path;
    this.salt = frameSalt(name);
    this.segment = segment;
    this.#fd = fd;
    this.#size = size;
  }

  /** Makes a file, for the user alone; nothing is left of it when that fails. Throws what the system throws. */
  static create(folder: string, name: string, segment: number, header: Uint8Array): SegmentFile {
    const path = `${folder}/${name}`;
    const fd = openSync(path, 'wx', 0o600);
    try {
      return new SegmentFile(path, name, segment, fd, writeFully(fd, [header], 0));
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

  /** Writes at the end and gives where that was. Throws what the system throws; then `rollBack` must be called with the size before. */
  write(parts: readonly Uint8Array[]): number {
    const offset = this.#size;
    this.#size += writeFully(this.#fd, parts, offset);
    return offset;
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
