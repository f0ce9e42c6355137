import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { RecordingSource } from '../lab/recordings/importer.js';
import { openRecording } from '../lab/recordings/open-recording.js';
import { systemCode } from '../process/system-error.js';

/**
 * Thrown if the file no longer begins with the bytes that were read: it was replaced, truncated or
 * rewritten. It has no `code`, because importers would take it for a system error and report a
 * loss.
 */
export class RewrittenError extends Error {
  override readonly name = 'RewrittenError';
}

/** How a growing file is read. */
export interface LiveFileOptions {
  /**
   * Time without a change after which the importer passes on entries that later lines could change,
   * in milliseconds.
   */
  readonly restMs: number;
  /** Time without a change after which reading ends, in milliseconds. */
  readonly idleMs: number;
}

const CHUNK_BYTES = 1_048_576;
/** With `O_NONBLOCK`, opening a pipe does not wait for a writer. Windows lacks it. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);
/** Number of already read bytes that are compared again before more is read. */
const COMPARED_BYTES = 1_024;

async function readAt(file: FileHandle, from: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await file.read(buffer, filled, length - filled, from + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}

/**
 * Reads a recording while its agent writes it. Reading ends when the file is removed or no longer
 * regular, has not grown for `idleMs`, or `end` is called. No file stays open between reads.
 */
export class LiveFile {
  readonly #path: string;
  readonly #options: LiveFileOptions;
  /** Whether the file is being read. */
  #isOpen = false;
  #isEnded = false;
  #bell: (() => void) | undefined;
  #hasRung = false;
  #waiting: { readonly resolve: () => void; readonly reject: (error: Error) => void }[] = [];
  #read = { size: 0, mtime: 0 };

  constructor(path: string, options: LiveFileOptions) {
    this.#path = path;
    this.#options = options;
  }

  /** The bytes that the importer has taken, and the file's modification time at the last read. */
  get read(): { readonly size: number; readonly mtime: number } {
    return this.#read;
  }

  /**
   * Opens the recording.
   * @throws {RecordingError} `unreadable`
   */
  async source(): Promise<RecordingSource> {
    const source = await openRecording(this.#path);
    return { ...source, open: () => this.#bytes() };
  }

  /** Reads the file now, because it may have changed. */
  ring(): void {
    this.#hasRung = true;
    this.#bell?.();
  }

  /**
   * Resolves when the importer has taken everything up to the file's current end. Rejects if
   * reading ends earlier.
   */
  caughtUp(): Promise<void> {
    const done = new Promise<void>((resolve, reject) => this.#waiting.push({ resolve, reject }));
    this.ring();
    return done;
  }

  /** Ends reading at the file's current end. Idempotent. */
  end(): void {
    this.#isEnded = true;
    this.ring();
  }

  /** Rejects the waiting callers, because the file is not read any more. */
  abandon(): void {
    for (const { reject } of this.#waiting.splice(0)) reject(new Error(`the reading of ${this.#path} has ended`));
  }

  async *#bytes(): AsyncGenerator<Buffer> {
    if (this.#isOpen) throw new Error('BUG: a growing file is read twice at once');
    this.#isOpen = true;
    const { restMs, idleMs } = this.#options;
    let inode: number | undefined;
    let at = 0;
    let last: Buffer = Buffer.alloc(0);
    let rests = true;
    let newsAt = performance.now();
    this.#read = { size: 0, mtime: 0 };
    try {
      for (;;) {
        this.#hasRung = false;
        const waiting = this.#waiting.length;
        const before = at;
        const file = await this.#open();
        if (file === undefined) return;
        try {
          const stats = await file.stat();
          if (!stats.isFile()) return;
          const { ino, size, mtimeMs } = stats;
          const isSame =
            (inode ?? ino) === ino && size >= at && last.equals(await readAt(file, at - last.length, last.length));
          if (!isSame) throw new RewrittenError(`${this.#path} was rewritten at byte ${at} or before`);
          inode = ino;
          for (;;) {
            const chunk = await readAt(file, at, CHUNK_BYTES);
            if (chunk.length === 0) break;
            at += chunk.length;
            last = Buffer.concat([last, chunk]).subarray(-COMPARED_BYTES);
            yield chunk;
          }
          this.#read = { size: at, mtime: mtimeMs };
        } finally {
          await file.close();
        }
        if (at > before) {
          rests = false;
          newsAt = performance.now();
        }
        const isDue = performance.now() - newsAt >= restMs;
        if (!rests && (isDue || this.#isEnded || waiting > 0)) {
          rests = true;
          yield Buffer.alloc(0);
        }
        for (const one of this.#waiting.splice(0, waiting)) one.resolve();
        if (this.#isEnded || performance.now() - newsAt >= idleMs) return;
        await this.#pause(rests ? idleMs - (performance.now() - newsAt) : restMs);
      }
    } finally {
      this.#isOpen = false;
      this.abandon();
    }
  }

  async #open(): Promise<FileHandle | undefined> {
    try {
      return await open(this.#path, FLAGS);
    } catch (error) {
      if (systemCode(error) === 'ENOENT') return undefined;
      throw error;
    }
  }

  /** Waits for `ring`, at most `ms`. */
  async #pause(ms: number): Promise<void> {
    if (this.#hasRung) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, Math.max(1, ms));
      this.#bell = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#bell = undefined;
  }
}
