import { constants } from 'node:fs';
import { type FileHandle, open, readdir } from 'node:fs/promises';
import { basename, join } from 'node:path';
import {
  FRAME_HEADER_BYTES,
  type FrameHeader,
  frameAt,
  frameSalt,
  isCutOff,
  nextFrame,
  payloadAt,
} from '../journal/frame.js';
import { systemCode, unlessMissing } from '../process/system-error.js';
import type { AnswerFacts } from './answer-facts.js';
import { LARGEST_BODY } from './content-encoding.js';
import { LOG_ENDING } from './gateway-log.js';
import { ENTRY, LOG_FORMAT, type LoggedAnswer, type LoggedRequest, parseEntry } from './log-entries.js';
import { type RequestFacts, requestFacts } from './request-facts.js';

const WINDOW = 4 * 1_048_576;

/** A request as it went out, read from the gateway's log. */
export interface SentRequest extends RequestFacts {
  /** Unique in a data folder: the log file and the number of the entry. */
  readonly id: string;
  readonly at: number;
  readonly wire: LoggedRequest['wire'];
  readonly path: string;
  readonly headers: LoggedRequest['headers'];
  readonly encoded: LoggedRequest['encoded'];
  /** The body in spans. Spans that requests share are equal bytes. Together they are the body. */
  readonly spans: readonly Buffer[];
  /** Undefined if the client left before the answer, or the gateway was killed. */
  readonly answer: AnswerFacts | undefined;
}

/** The place of a span's bytes in its file. */
interface SpanPlace {
  readonly at: number;
  readonly length: number;
}

/**
 * Opens a log file. Undefined if there is no readable file of this name, so that one foreign entry
 * of the folder hides no other log. Opening a pipe does not wait for its writer.
 */
async function opened(path: string): Promise<FileHandle | undefined> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch((error: unknown) => {
    if (systemCode(error) === undefined) throw error;
    return undefined;
  });
  if (file === undefined || (await file.stat()).isFile()) return file;
  await file.close();
  return undefined;
}

/** Reads one log file from where it stopped before. The file may be growing. */
class FollowedLog {
  readonly path: string;
  readonly #salt: number;
  readonly #spans = new Map<number, SpanPlace>();
  readonly #open = new Map<number, LoggedRequest>();
  #at = 0;
  #isNewer = false;

  constructor(path: string) {
    this.path = path;
    this.#salt = frameSalt(basename(path));
  }

  /** Yields the requests whose answers ended since the last read. */
  async *more(): AsyncGenerator<SentRequest> {
    const file = this.#isNewer ? undefined : await opened(this.path);
    if (file === undefined) return;
    try {
      const { size } = await file.stat();
      let window = WINDOW;
      while (this.#at < size && !this.#isNewer) {
        const bytes = Buffer.alloc(Math.min(window, size - this.#at));
        const { bytesRead } = await file.read(bytes, 0, bytes.length, this.#at);
        const read = bytes.subarray(0, bytesRead);
        const before = this.#at;
        const ended = this.#frames(read, this.#at + read.length >= size);
        for (const [request, answer, number] of ended) yield* this.#sent(file, { request, answer, number });
        // A frame longer than the window needs a larger one; at the end of the file, more bytes.
        if (this.#at === before && read.length >= size - before) return;
        window = this.#at === before ? window * 2 : WINDOW;
      }
    } finally {
      await file.close();
    }
  }

  /** Yields the requests without an answer. Their gateway has ended. */
  async *unanswered(): AsyncGenerator<SentRequest> {
    const file = await opened(this.path);
    if (file === undefined) return;
    try {
      for (const [number, request] of this.#open) yield* this.#sent(file, { request, number });
      this.#open.clear();
    } finally {
      await file.close();
    }
  }

  /** Reads whole frames and returns the requests that they end. */
  #frames(bytes: Buffer, isWholeRest: boolean): readonly (readonly [LoggedRequest, LoggedAnswer, number])[] {
    const ended: [LoggedRequest, LoggedAnswer, number][] = [];
    let at = 0;
    while (at < bytes.length) {
      const frame = frameAt(bytes, at, this.#salt);
      if (frame === undefined) {
        if (isCutOff(bytes, at, this.#salt)) break;
        const next = nextFrame(bytes, at + 1, this.#salt);
        // Without a later frame, the rest may still be in the middle of its write.
        if (next === undefined) {
          if (!isWholeRest) at = Math.max(at, bytes.length - FRAME_HEADER_BYTES);
          break;
        }
        at = next;
        continue;
      }
      const found = this.#entry(frame, payloadAt(bytes, at, frame.length), at);
      if (found !== undefined) ended.push(found);
      at += FRAME_HEADER_BYTES + frame.length;
    }
    this.#at += at;
    return ended;
  }

  #entry(
    { sequence, length }: FrameHeader,
    payload: Buffer,
    at: number,
  ): [LoggedRequest, LoggedAnswer, number] | undefined {
    if (payload[0] === ENTRY.span) {
      this.#spans.set(sequence, { at: this.#at + at + FRAME_HEADER_BYTES + 1, length: length - 1 });
      return undefined;
    }
    const entry = parseEntry(payload);
    if (entry?.kind === 'head') this.#isNewer = entry.format > LOG_FORMAT;
    else if (entry?.kind === 'request') this.#open.set(sequence, entry);
    else if (entry?.kind === 'answer') {
      const request = this.#open.get(entry.request);
      this.#open.delete(entry.request);
      if (request !== undefined) return [request, entry, entry.request];
    }
    return undefined;
  }

  /** Yields the request with its body. A request whose spans are damaged is left out. */
  async *#sent(
    file: FileHandle,
    {
      request,
      answer,
      number,
    }: { readonly request: LoggedRequest; readonly answer?: LoggedAnswer; readonly number: number },
  ): AsyncGenerator<SentRequest> {
    const spans: Buffer[] = [];
    let left = Math.min(request.bytes, LARGEST_BODY);
    for (const [first, last] of request.spans) {
      for (let one = first; one <= last; one += 1) {
        const place = this.#spans.get(one);
        if (place === undefined) return;
        // A damaged list of spans could name one of them without end.
        left -= place.length;
        if (left < 0) return;
        const span = Buffer.alloc(place.length);
        await file.read(span, 0, span.length, place.at);
        spans.push(span);
      }
    }
    const body = Buffer.concat(spans);
    if (body.length !== request.bytes) return;
    const { at, wire, path, headers, encoded } = request;
    const id = `${basename(this.path, LOG_ENDING)}:${number}`;
    yield { id, at, wire, path, headers, encoded, spans, answer: answer?.facts, ...requestFacts(request, body) };
  }
}

/**
 * Follows the logs of all gateways of a data folder. Each read yields the requests that ended since
 * the last one, file by file. Damaged entries are skipped.
 */
export class GatewayLogReader {
  readonly #folder: string;
  readonly #files = new Map<string, FollowedLog>();

  /** `folder` holds the log files; it need not exist yet. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Yields the requests whose answers ended since the last read. */
  async *more(): AsyncGenerator<SentRequest> {
    for (const file of await this.#logs()) yield* file.more();
  }

  async #logs(): Promise<readonly FollowedLog[]> {
    const names = ((await unlessMissing(readdir(this.#folder))) ?? []).filter((name) => name.endsWith(LOG_ENDING));
    for (const name of names.sort())
      if (!this.#files.has(name)) this.#files.set(name, new FollowedLog(join(this.#folder, name)));
    return names.flatMap((name) => this.#files.get(name) ?? []);
  }
}

/**
 * Reads one log file to its end: the answered requests in the order of their answers, then those
 * without an answer.
 */
export async function* readGatewayLog(path: string): AsyncGenerator<SentRequest> {
  const log = new FollowedLog(path);
  yield* log.more();
  yield* log.unanswered();
}
