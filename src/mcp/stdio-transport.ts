import type { Readable, Writable } from 'node:stream';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ErrorCode, type JSONRPCMessage, JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import { messageOf } from '../values/thrown.js';
import {
  answeredId,
  dropNullParams,
  idIn,
  type MessageRefusal,
  parseExact,
  refusalOf,
  stringifyExact,
  tooDeep,
} from './check-message.js';

/** Maximum length of a line. A long `write` is one line. */
const LONGEST_LINE_BYTES = 64 * 1024 * 1024;
/** Bytes kept of each end of an overlong line. The request's id is usually in one of them. */
const END_BYTES = 1_024;
const LINE_END = 0x0a;
const BYTE_ORDER_MARK = '\ufeff';
/** Maximum number of messages in a batch, as over HTTP. */
const LARGEST_BATCH = 100;

/** The bytes of the current line, or both ends of an overlong one. */
class Line {
  readonly #longest: number;
  #pieces: Buffer[] = [];
  #head: Buffer | undefined;
  #tail = Buffer.alloc(0);
  #bytes = 0;

  constructor(longest: number) {
    this.#longest = longest;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The ends of an overlong line. Undefined for other lines. */
  get ends(): { readonly head: string; readonly tail: string } | undefined {
    return this.#head === undefined
      ? undefined
      : { head: this.#head.toString('utf8'), tail: this.#tail.toString('utf8') };
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length;
    this.#tail = Buffer.concat([this.#tail, piece.subarray(-END_BYTES)]).subarray(-END_BYTES);
    if (this.#head === undefined) this.#pieces.push(piece);
    if (this.#bytes <= this.#longest || this.#head !== undefined) return;
    this.#head = Buffer.concat(this.#pieces, Math.min(this.#bytes, END_BYTES));
    this.#pieces = [];
  }

  text(): string {
    return Buffer.concat(this.#pieces).toString('utf8');
  }
}

/**
 * The stdio transport of a server, with one message or batch per line. Time and memory are linear
 * in the length of a line. Each message of a batch gets its answer on a separate line as soon as
 * possible. An invalid message or a line over 64 MiB gets an error, with the message's id if that
 * is readable. The transport then continues.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #longest: number;
  #line: Line;
  /** Whether strings replace numeric ids that a double cannot represent. */
  #hasExactIds = false;
  readonly #onData = (chunk: Buffer): void => this.#read(chunk);
  readonly #onError = (error: Error): void => this.onerror?.(error);

  constructor(input: Readable, output: Writable, longestLineBytes = LONGEST_LINE_BYTES) {
    this.#input = input;
    this.#output = output;
    this.#longest = longestLineBytes;
    this.#line = new Line(longestLineBytes);
  }

  async start(): Promise<void> {
    this.#input.on('data', this.#onData);
    this.#input.on('error', this.#onError);
  }

  /** Resolves when the message is written or queued in the output. */
  send(message: unknown): Promise<void> {
    return new Promise((resolve) => {
      const text = this.#hasExactIds ? stringifyExact(message) : JSON.stringify(message);
      if (this.#output.write(`${text}\n`)) resolve();
      else this.#output.once('drain', resolve);
    });
  }

  async close(): Promise<void> {
    this.#input.off('data', this.#onData);
    this.#input.off('error', this.#onError);
    this.#input.pause();
    this.onclose?.();
  }

  #read(chunk: Buffer): void {
    let from = 0;
    for (let end = chunk.indexOf(LINE_END); end !== -1; end = chunk.indexOf(LINE_END, from)) {
      const start = from;
      from = end + 1;
      // Most lines arrive whole.
      if (this.#line.bytes === 0 && end - start <= this.#longest) this.#receiveText(chunk.toString('utf8', start, end));
      else this.#receive(chunk.subarray(start, end));
    }
    if (from < chunk.length) this.#line.add(chunk.subarray(from));
  }

  /** Processes the line that ends with a piece. */
  #receive(piece: Buffer): void {
    const line = this.#line;
    this.#line = new Line(this.#longest);
    line.add(piece);
    const { ends } = line;
    if (ends !== undefined) {
      const message =
        `A line of ${line.bytes} bytes is over the limit of ${this.#longest}; nothing was done. ` +
        'Send less at once.';
      this.#hasExactIds = true;
      this.#refuse(idIn(ends.head, ends.tail), { code: ErrorCode.InvalidRequest, message });
      return;
    }
    this.#receiveText(line.text());
  }

  #receiveText(line: string): void {
    const text = line.startsWith(BYTE_ORDER_MARK) ? line.slice(1) : line;
    if (text.trim() === '') return;
    let value: unknown;
    try {
      const parsed = parseExact(text);
      value = parsed.value;
      this.#hasExactIds ||= parsed.isExact;
    } catch (error) {
      const reason = messageOf(error).slice(0, 300);
      const message = `The line is not JSON: ${reason}; nothing was done. Send one message per line.`;
      this.#refuse(null, { code: ErrorCode.ParseError, message });
      return;
    }
    if (Array.isArray(value)) this.#batch(value, text.length);
    else this.#message(value, text.length);
  }

  #batch(messages: readonly unknown[], chars: number): void {
    if (messages.length === 0 || messages.length > LARGEST_BATCH) {
      const message =
        `A batch holds 1 to ${LARGEST_BATCH} messages, this one ${messages.length}; nothing was done. ` +
        'Send each on a separate line.';
      this.#refuse(null, { code: ErrorCode.InvalidRequest, message });
      return;
    }
    for (const message of messages) this.#message(message, chars);
  }

  #message(value: unknown, chars: number): void {
    const deep = tooDeep(value, chars);
    if (deep !== undefined) {
      this.#refuse(answeredId(value), deep);
      return;
    }
    dropNullParams(value);
    const refusal = refusalOf(value);
    if (refusal === undefined) this.onmessage?.(JSONRPCMessageSchema.parse(value));
    else this.#refuse(answeredId(value), refusal);
  }

  /**
   * Answers with an error. Sends nothing if `id` is undefined, because the message expects no
   * answer.
   */
  #refuse(id: unknown, error: MessageRefusal): void {
    this.onerror?.(new Error(error.message));
    if (id !== undefined) void this.send({ jsonrpc: '2.0', id, error });
  }
}
