import type { Readable, Writable } from 'node:stream';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { ErrorCode, type JSONRPCMessage, JSONRPCMessageSchema, JSONRPCRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { errorOf } from '../values/thrown.js';
import { tooDeep } from './adapter.js';
import type { DirectCalls } from './direct-calls.js';

/** The longest line that is read; a long `write` comes as one. */
const LONGEST_LINE_BYTES = 64 * 1024 * 1024;
/** What is kept of each end of a line that is too long: one of them holds the id of its request. */
const END_BYTES = 1_024;
const LINE_END = 0x0a;

const SCALAR = String.raw`("(?:[^"\\]|\\.)*"|-?\d+)`;
const NAMED = String.raw`"(?:jsonrpc|method)"\s*:\s*"(?:[^"\\]|\\.)*"`;
const ID_AT_START = new RegExp(String.raw`^\s*\{\s*(?:${NAMED}\s*,\s*)*"id"\s*:\s*${SCALAR}\s*,`);
// Inside a string a quote has a backslash before it, so this is a member of the outermost object.
const ID_AT_END = new RegExp(String.raw`,\s*"id"\s*:\s*${SCALAR}\s*(?:,\s*${NAMED}\s*)*\}\s*$`);

/** The id of a request of which both ends are known; null where neither holds it. */
function idIn(head: string, tail: string): unknown {
  const found = ID_AT_START.exec(head)?.[1] ?? ID_AT_END.exec(tail)?.[1];
  return found === undefined ? null : JSON.parse(found);
}

/** Where a request is wrong, and how. */
function issueIn(
  error: { readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[] } | undefined,
): string {
  const [issue] = error?.issues ?? [];
  return `${issue?.path.map(String).join('.') ?? ''} ${issue?.message ?? 'invalid'}`.trim().slice(0, 500);
}

/** The bytes of the line that is being read: all of them, or both ends of one that is too long. */
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

  /** The ends of a line that is too long; undefined for one that is not. */
  get ends(): { readonly head: string; readonly tail: string } | undefined {
    return this.#head === undefined ? undefined : { head: this.#head.toString('utf8'), tail: this.#tail.toString('utf8') };
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
 * The stdio transport of a server: one message a line. In time and memory linear in a line; what is no message is answered with an error where its id can be
 * read, as is a line of over 64 MiB, and the connection goes on.
 */
export class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  /** Is asked first about every message that does not nest too deep; what it does not take goes to `onmessage`. */
  direct?: Pick<DirectCalls, 'take'>;
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #longest: number;
  #line: Line;
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

  /** Resolves when the message is written, or waits in the output. */
  send(message: unknown): Promise<void> {
    return new Promise((resolve) => {
      if (this.#output.write(`${JSON.stringify(message)}\n`)) resolve();
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
      // Most lines come whole.
      if (this.#line.bytes === 0 && end - start <= this.#longest) this.#receiveText(chunk.toString('utf8', start, end));
      else this.#receive(chunk.subarray(start, end));
    }
    if (from < chunk.length) this.#line.add(chunk.subarray(from));
  }

  /** Receives the line that ends with a piece. */
  #receive(piece: Buffer): void {
    const line = this.#line;
    this.#line = new Line(this.#longest);
    line.add(piece);
    const { ends } = line;
    if (ends !== undefined) {
      const message = `A line of ${line.bytes} bytes is over the limit of ${this.#longest}; nothing was done. Send less at once.`;
      this.#refuse(idIn(ends.head, ends.tail), ErrorCode.InvalidRequest, message);
      return;
    }
    this.#receiveText(line.text());
  }

  #receiveText(text: string): void {
    if (text.trim() === '') return;
    try {
      this.#parsed(JSON.parse(text), text.length);
    } catch (error) {
      this.onerror?.(errorOf(error));
    }
  }

  #parsed(value: unknown, chars: number): void {
    const { id, method } = (typeof value === 'object' && value !== null ? value : {}) as {
      readonly id?: unknown;
      readonly method?: unknown;
    };
    const canAnswer = method !== undefined && (typeof id === 'string' || Number.isSafeInteger(id));
    const deep = tooDeep(value, chars);
    if (deep !== undefined) {
      this.#refuse(canAnswer ? id : null, ErrorCode.InvalidRequest, deep);
      return;
    }
    if (this.direct?.take(value) === true) return;
    const parsed = JSONRPCMessageSchema.safeParse(value);
    if (parsed.success) this.onmessage?.(parsed.data);
    else if (canAnswer)
      this.#refuse(
        id,
        ErrorCode.InvalidRequest,
        `The message is no JSON-RPC request of MCP: ${issueIn(JSONRPCRequestSchema.safeParse(value).error)}`,
      );
    else this.onerror?.(parsed.error);
  }

  #refuse(id: unknown, code: number, message: string): void {
    this.onerror?.(new Error(message));
    void this.send({ jsonrpc: '2.0', id, error: { code, message } });
  }
}
