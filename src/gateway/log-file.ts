import { type FileHandle, open } from 'node:fs/promises';
import { basename } from 'node:path';
import { encodeFrameHeader, FRAME_HEADER_BYTES, frameSalt } from '../journal/frame.js';
import { entryPayload, type LogEntry, type LoggedText, spanPayload } from './log-entries.js';
import type { LoggedBody } from './masked-spans.js';

/** Frames that are written together. */
interface Batch {
  readonly buffers: Buffer[];
  bytes: number;
  next: number;
}

/** A written span, and its size. */
interface WrittenSpan {
  readonly number: number;
  readonly bytes: number;
}

/**
 * One file of the gateway's log. Entries are appended as checksummed frames in one write each, so a
 * killed process leaves at most one incomplete frame at the end. The file is truncated again after
 * a failed write.
 */
export class LogFile {
  readonly #handle: FileHandle;
  readonly #salt: number;
  readonly #at: () => number;
  /** Written spans, by the hashes of their bytes before masking. */
  readonly #spans = new Map<string, WrittenSpan>();
  #size = 0;
  #next = 1;
  #isBroken = false;
  #queue: Promise<unknown> = Promise.resolve();
  /** Number of requests whose answers are still to be written to this file. */
  open = 0;

  private constructor(handle: FileHandle, name: string, at: () => number) {
    this.#handle = handle;
    this.#salt = frameSalt(name);
    this.#at = at;
  }

  /** Creates a new file that only this user can read. Rejects with system errors. */
  static async create(path: string, at: () => number): Promise<LogFile> {
    return new LogFile(await open(path, 'wx', 0o600), basename(path), at);
  }

  get size(): number {
    return this.#size;
  }

  /** Whether the file takes no more entries: closed, or a failed write could not be undone. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /**
   * Appends an entry and returns its number. If it rejects with a system error, it wrote nothing.
   */
  append(entry: LogEntry): Promise<number> {
    return this.#serial(async (batch) => this.#add(batch, entryPayload(entry)));
  }

  /**
   * Appends an entry that refers to all spans of one or two bodies. Before it, appends the spans
   * that the file lacks. Masks each span once. Returns the number of the entry. If it rejects with
   * a system error, it wrote nothing.
   */
  appendBody(
    body: LoggedBody,
    entry: (text: LoggedText, own: LoggedText | undefined) => LogEntry,
    own?: LoggedBody,
  ): Promise<number> {
    return this.#serial(async (batch, fresh) => {
      const text = this.#addBody(body, batch, fresh);
      const ownText = own === undefined ? undefined : this.#addBody(own, batch, fresh);
      return this.#add(batch, entryPayload(entry(text, ownText)));
    });
  }

  /** Waits for running writes, then closes the file. Idempotent. */
  async close(): Promise<void> {
    this.#isBroken = true;
    await this.#queue;
    await this.#handle.close().catch(() => undefined);
  }

  /** Masks the spans that the file lacks, so that the write itself only waits for the disk. */
  prepare(body: LoggedBody): void {
    for (const [i, key] of body.keys.entries()) if (!this.#spans.has(key)) body.kept(i);
  }

  #addBody(body: LoggedBody, batch: Batch, fresh: Map<string, WrittenSpan>): LoggedText {
    const runs: [number, number][] = [];
    let size = 0;
    for (const [i, key] of body.keys.entries()) {
      const { number, bytes } = this.#spans.get(key) ?? fresh.get(key) ?? this.#addSpan(batch, body.kept(i));
      fresh.set(key, { number, bytes });
      size += bytes;
      const last = runs.at(-1);
      if (last !== undefined && last[1] + 1 === number) last[1] = number;
      else runs.push([number, number]);
    }
    return { spans: runs, bytes: size };
  }

  #addSpan(batch: Batch, span: Buffer): WrittenSpan {
    return { number: this.#add(batch, spanPayload(span)), bytes: span.length };
  }

  #add(batch: Batch, payload: readonly Buffer[]): number {
    const number = batch.next;
    const length = payload.reduce((sum, part) => sum + part.length, 0);
    const before = number - 1;
    const header = { kind: 'record', length, sequence: number, acknowledged: before, done: 0, at: this.#at() } as const;
    batch.buffers.push(encodeFrameHeader(header, payload, this.#salt), ...payload);
    batch.bytes += FRAME_HEADER_BYTES + length;
    batch.next += 1;
    return number;
  }

  #serial(plan: (batch: Batch, fresh: Map<string, WrittenSpan>) => Promise<number>): Promise<number> {
    const done = this.#queue.then(async () => {
      if (this.#isBroken) throw new Error('the log file is closed');
      const batch: Batch = { buffers: [], bytes: 0, next: this.#next };
      const fresh = new Map<string, WrittenSpan>();
      const number = await plan(batch, fresh);
      await this.#write(batch);
      this.#next = batch.next;
      this.#size += batch.bytes;
      for (const [key, of] of fresh) this.#spans.set(key, of);
      return number;
    });
    this.#queue = done.catch(() => undefined);
    return done;
  }

  async #write({ buffers, bytes }: Batch): Promise<void> {
    try {
      const { bytesWritten } = await this.#handle.writev(buffers, this.#size);
      if (bytesWritten !== bytes) throw new Error(`the disk took ${bytesWritten} of ${bytes} bytes`);
    } catch (error) {
      await this.#handle.truncate(this.#size).catch(() => {
        this.#isBroken = true;
      });
      throw error;
    }
  }
}
