import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rm } from 'node:fs/promises';
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
import { identifySelf, isAlive, type ProcessIdentity } from '../process/process-identity.js';
import { systemCode, unlessMissing } from '../process/system-error.js';
import { defined } from '../values/defined.js';
import type { AnswerFacts } from './answer-facts.js';
import { bodySpans } from './body-spans.js';
import { LARGEST_BODY } from './content-encoding.js';
import { LOG_ENDING } from './gateway-log.js';
import {
  ENTRY,
  LOG_FORMAT,
  type LoggedAnswer,
  type LoggedRequest,
  type LoggedText,
  parseEntry,
} from './log-entries.js';
import { type Exchange, rebuiltBody } from './rebuild-body.js';
import { type RequestFacts, requestFacts } from './request-facts.js';

const WINDOW = 4 * 1_048_576;

/** A request as it was sent, read from the gateway's log. */
export interface SentRequest extends RequestFacts {
  /** Unique in a data folder: the name of the log file and the number of the entry. */
  readonly id: string;
  readonly at: number;
  readonly wire: LoggedRequest['wire'];
  readonly path: string;
  readonly headers: LoggedRequest['headers'];
  readonly encoded: LoggedRequest['encoded'];
  readonly steer?: NonNullable<LoggedRequest['steer']>;
  /** See `LoggedRequest.own`. */
  readonly own?: Buffer;
  /** The body, cut into spans. Requests with common text have equal spans. */
  readonly spans: readonly Buffer[];
  /** Undefined if the client disconnected before the answer, or the gateway was killed. */
  readonly answer: AnswerFacts | undefined;
  /**
   * The whole body of a request that continues an earlier answer, rebuilt from earlier requests and
   * answers. Present if the log has all of them; `from` is their number.
   */
  readonly rebuilt?: { readonly spans: readonly Buffer[]; readonly from: number };
}

/** An answered request that a later request may continue. */
interface Continued {
  readonly request: LoggedRequest;
  readonly kept: NonNullable<LoggedAnswer['kept']>;
}

/** Selects requests by their entries, before their bodies are read. */
type Wanted = (request: LoggedRequest) => boolean;
const ANY: Wanted = () => true;

/** The place of a span's bytes in its file. */
interface SpanPlace {
  readonly at: number;
  readonly length: number;
}

/**
 * Opens a log file. Returns undefined for an unreadable or irregular file, so that a foreign file
 * in the folder does not prevent reading the logs. Does not block on a named pipe.
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

/** Reads a log file that may be growing. Each read continues where the previous one stopped. */
class FollowedLog {
  readonly path: string;
  readonly #salt: number;
  readonly #spans = new Map<number, SpanPlace>();
  readonly #open = new Map<number, LoggedRequest>();
  /** Requests whose answers are kept, by the provider's ids of the answers. */
  readonly #continued = new Map<string, Continued>();
  /** The gateway that writes the file. Undefined until the first entry is read. */
  writer: ProcessIdentity | undefined;
  #at = 0;
  #isNewer = false;

  constructor(path: string) {
    this.path = path;
    this.#salt = frameSalt(basename(path));
  }

  /** Yields the wanted requests whose answers ended since the last read. */
  async *more(wants: Wanted = ANY): AsyncGenerator<SentRequest> {
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
        for (const [request, answer, number] of ended)
          if (wants(request)) yield* this.#sent(file, { request, answer, number });
        // No complete frame was found. At the end of the file, wait for more bytes; elsewhere, read
        // a larger piece.
        if (this.#at === before && read.length >= size - before) return;
        window = this.#at === before ? window * 2 : WINDOW;
      }
    } finally {
      await file.close();
    }
  }

  /** Yields the wanted requests without an answer. Call it only after the gateway has ended. */
  async *unanswered(wants: Wanted = ANY): AsyncGenerator<SentRequest> {
    const file = await opened(this.path);
    if (file === undefined) return;
    try {
      for (const [number, request] of this.#open) if (wants(request)) yield* this.#sent(file, { request, number });
      this.#open.clear();
    } finally {
      await file.close();
    }
  }

  /** Reads the complete frames. Returns the requests whose answers are among them. */
  #frames(bytes: Buffer, isWholeRest: boolean): readonly (readonly [LoggedRequest, LoggedAnswer, number])[] {
    const ended: [LoggedRequest, LoggedAnswer, number][] = [];
    let at = 0;
    while (at < bytes.length) {
      const frame = frameAt(bytes, at, this.#salt);
      if (frame === undefined) {
        if (isCutOff(bytes, at, this.#salt)) break;
        const next = nextFrame(bytes, at + 1, this.#salt);
        // No later frame follows, so the writer may not have finished this frame.
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
    if (entry?.kind === 'head') {
      this.#isNewer = entry.format > LOG_FORMAT;
      this.writer = entry;
    } else if (entry?.kind === 'request') this.#open.set(sequence, entry);
    else if (entry?.kind === 'answer') {
      const request = this.#open.get(entry.request);
      this.#open.delete(entry.request);
      const [id, kept] = [entry.facts?.id, entry.kept];
      if (request !== undefined && id !== undefined && kept !== undefined) this.#continued.set(id, { request, kept });
      if (request !== undefined) return [request, entry, entry.request];
    }
    return undefined;
  }

  /** Yields a request with its body. Yields nothing if its spans are damaged. */
  async *#sent(
    file: FileHandle,
    {
      request,
      answer,
      number,
    }: { readonly request: LoggedRequest; readonly answer?: LoggedAnswer; readonly number: number },
  ): AsyncGenerator<SentRequest> {
    const spans = await this.#read(file, request);
    if (spans === undefined) return;
    const { at, wire, path, headers, encoded, steer } = request;
    const ownSpans = request.own === undefined ? undefined : await this.#read(file, request.own);
    const own = ownSpans === undefined ? undefined : Buffer.concat(ownSpans);
    const id = `${basename(this.path, LOG_ENDING)}:${number}`;
    const facts = requestFacts(request, Buffer.concat(spans));
    yield { id, at, wire, path, headers, encoded, spans, answer: answer?.facts, ...defined({ steer, own }), ...facts };
  }

  /** Returns a kept answer and its request, by the provider's id of the answer. */
  async exchange(answer: string): Promise<Exchange | undefined> {
    const found = this.#continued.get(answer);
    const file = found === undefined ? undefined : await opened(this.path);
    if (found === undefined || file === undefined) return undefined;
    try {
      const [body, content] = [await this.#read(file, found.request), await this.#read(file, found.kept)];
      if (body === undefined || content === undefined) return undefined;
      return { wire: found.request.wire, body: Buffer.concat(body), answer: Buffer.concat(content) };
    } finally {
      await file.close();
    }
  }

  /** Reads the spans of a text. Undefined if they are damaged. */
  async #read(file: FileHandle, { spans: runs, bytes }: LoggedText): Promise<readonly Buffer[] | undefined> {
    const spans: Buffer[] = [];
    let left = Math.min(bytes, LARGEST_BODY);
    for (const [first, last] of runs) {
      for (let one = first; one <= last; one += 1) {
        const place = this.#spans.get(one);
        if (place === undefined) return undefined;
        // A damaged entry could refer to one span many times and fill the memory.
        left -= place.length;
        if (left < 0) return undefined;
        const span = Buffer.alloc(place.length);
        await file.read(span, 0, span.length, place.at);
        spans.push(span);
      }
    }
    return spans.reduce((sum, span) => sum + span.length, 0) === bytes ? spans : undefined;
  }
}

/**
 * Follows the logs of all gateways of a data folder. Each read yields the requests that ended since
 * the previous one, file by file. Damaged entries are skipped.
 */
export class GatewayLogReader {
  readonly #folder: string;
  readonly #files = new Map<string, FollowedLog>();

  /** `folder` has the log files. It need not exist yet. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Yields the requests whose answers ended since the last read. */
  async *more(): AsyncGenerator<SentRequest> {
    for (const file of await this.#logs()) for await (const request of file.more()) yield await this.#whole(request);
  }

  /** Adds the rebuilt body to a request that continues an earlier answer. */
  async #whole(request: SentRequest): Promise<SentRequest> {
    if (request.thread?.type !== 'continue' && request.previous === undefined) return request;
    const whole = await rebuiltBody(request.wire, Buffer.concat(request.spans), async (answer) => {
      for (const file of this.#files.values()) {
        const found = await file.exchange(answer);
        if (found !== undefined) return found;
      }
      return undefined;
    });
    return whole === undefined ? request : { ...request, rebuilt: { spans: bodySpans(whole.body), from: whole.from } };
  }

  /**
   * Removes files whose gateway has ended and whose last entry is older than `before`. By then
   * their requests are recorded or left out for good. Ignores files that cannot be removed.
   */
  async removeOld(before: number): Promise<void> {
    for (const file of await this.#logs()) {
      const found = await unlessMissing(lstat(file.path)).catch(() => undefined);
      const isOld = found?.isFile() === true && found.mtimeMs < before;
      if (!isOld || file.writer === undefined || (await isAlive(file.writer))) continue;
      const isRemoved = await rm(file.path).then(
        () => true,
        () => false,
      );
      if (isRemoved) this.#files.delete(basename(file.path));
    }
  }

  async #logs(): Promise<readonly FollowedLog[]> {
    const names = ((await unlessMissing(readdir(this.#folder))) ?? []).filter((name) => name.endsWith(LOG_ENDING));
    for (const name of names.sort())
      if (!this.#files.has(name)) this.#files.set(name, new FollowedLog(join(this.#folder, name)));
    return names.flatMap((name) => this.#files.get(name) ?? []);
  }
}

/**
 * Reads a whole log file. Yields the answered requests in the order of their answers, then those
 * without an answer.
 */
export async function* readGatewayLog(path: string): AsyncGenerator<SentRequest> {
  const log = new FollowedLog(path);
  yield* log.more();
  yield* log.unanswered();
}

/**
 * Yields the wanted requests in the logs of gateways that have ended, file by file. Call it before
 * this process logs requests: earlier logs of this process count as those of an ended gateway.
 * Leaves out files whose last entry is older than `since`, a time in milliseconds since 1970.
 */
export async function* requestsOfEnded(folder: string, since: number, wants: Wanted): AsyncGenerator<SentRequest> {
  const names = ((await unlessMissing(readdir(folder))) ?? []).filter((name) => name.endsWith(LOG_ENDING));
  const self = await identifySelf();
  for (const name of names.sort()) {
    const path = join(folder, name);
    const found = await unlessMissing(lstat(path));
    if (found?.isFile() !== true || found.mtimeMs < since) continue;
    const writer = await logWriter(path);
    const isOurs = writer?.pid === self.pid && writer.started === self.started;
    if (writer === undefined || (!isOurs && (await isAlive(writer)))) continue;
    const log = new FollowedLog(path);
    yield* log.more(wants);
    yield* log.unanswered(wants);
  }
}

/** Returns the gateway that writes a log file. Undefined if the file does not name it. */
export async function logWriter(path: string): Promise<ProcessIdentity | undefined> {
  const log = new FollowedLog(path);
  // The first entry names the gateway.
  for await (const _ of log.more()) break;
  return log.writer;
}
