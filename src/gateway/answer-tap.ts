import { type Transform, Writable } from 'node:stream';
import { AnswerCollector, type AnswerFacts } from './answer-facts.js';
import { streamDecoder } from './content-encoding.js';
import { asObject } from './json-facts.js';
import { KeptAnswer } from './kept-answer.js';
import { codingsOf, headerOf, type RawHeaders } from './raw-headers.js';
import type { Wire } from './wires.js';

/** Maximum size of one event, or of an answer without a stream. Larger ones are not read. */
const MOST_TEXT = 32 * 1_048_576;
/** If this many bytes wait for the decoder, the rest of the answer is not read. */
const MOST_WAITING = 8 * 1_048_576;

const LINE_END = 0x0a;

/** Splits the text of a stream into events, or collects the whole text of another answer. */
class AnswerReader {
  readonly #collector: AnswerCollector;
  readonly #kept: KeptAnswer | undefined;
  readonly #isStream: boolean;
  #waiting: Buffer[] = [];
  #size = 0;
  #data: string[] = [];
  #dataSize = 0;
  #isOver = false;

  constructor(collector: AnswerCollector, kept: KeptAnswer | undefined, isStream: boolean) {
    this.#collector = collector;
    this.#kept = kept;
    this.#isStream = isStream;
  }

  write(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#waiting.push(chunk);
    this.#size += chunk.length;
    if (this.#size > MOST_TEXT) this.#giveUp();
    else if (this.#isStream && chunk.includes(LINE_END)) this.#lines();
  }

  end(): void {
    if (this.#isOver) return;
    if (this.#isStream) {
      this.#lines(true);
      this.#dispatch();
      return;
    }
    const whole = parsed(Buffer.concat(this.#waiting).toString('utf8'));
    if (whole === undefined) return;
    this.#collector.takeWhole(whole);
    this.#kept?.takeWhole(asObject(whole));
  }

  #giveUp(): void {
    this.#isOver = true;
    this.#waiting = [];
    this.#data = [];
  }

  #lines(isEnd = false): void {
    const all = this.#waiting.length === 1 ? (this.#waiting[0] as Buffer) : Buffer.concat(this.#waiting);
    const end = isEnd ? all.length : all.lastIndexOf(LINE_END) + 1;
    this.#waiting = end === all.length ? [] : [all.subarray(end)];
    this.#size = all.length - end;
    const lines = all.toString('utf8', 0, end).split(/\r\n|\n|\r/);
    // The empty text after the last line end is no line. It would end the event.
    if (lines.at(-1) === '') lines.pop();
    for (const line of lines) {
      if (line === '') this.#dispatch();
      else if (line.startsWith('data:')) this.#line(line.slice(line[5] === ' ' ? 6 : 5));
      if (this.#isOver) return;
    }
  }

  /** Takes one line of an event. Stops reading if the event becomes too large. */
  #line(data: string): void {
    this.#data.push(data);
    this.#dataSize += data.length + 1;
    if (this.#dataSize > MOST_TEXT) this.#giveUp();
  }

  #dispatch(): void {
    const data = this.#data.join('\n');
    this.#data = [];
    this.#dataSize = 0;
    if (data === '' || data === '[DONE]') return;
    const event = parsed(data);
    if (event === undefined) return;
    this.#collector.take(event);
    this.#kept?.take(asObject(event), data.length);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** How an answer is read. */
interface TapOptions {
  /** Removes credentials from an error's message. */
  readonly clean: (text: string) => string;
  /** Masks a text before it is hashed, because the session's message has the masked text. */
  readonly masked: (text: string) => string;
  /** Whether the content of the answer is kept as well. */
  readonly keeps: boolean;
}

/** A finished answer. */
export interface TappedAnswer {
  readonly facts: AnswerFacts;
  /** The content of the answer as JSON. Undefined if it was not kept or is incomplete. */
  readonly kept: Buffer | undefined;
}

/**
 * Reads a copy of an answer while the answer goes to the client. Never delays the answer and never
 * throws. Parts that it cannot read are missing in the facts.
 */
export class AnswerTap {
  readonly #collector: AnswerCollector;
  readonly #kept: KeptAnswer | undefined;
  readonly #reader: AnswerReader;
  readonly #decoder: Transform | undefined;
  /**
   * Resolves when the decoder has no more output. The decoder may stop before the end of the
   * answer.
   */
  readonly #decoded: Promise<void> | undefined;
  readonly #isUnknown: boolean;
  #isLate = false;

  constructor(wire: Wire, headers: RawHeaders, { clean, masked, keeps }: TapOptions) {
    this.#collector = new AnswerCollector(wire, { clean, masked });
    this.#kept = keeps ? new KeptAnswer(wire) : undefined;
    const type = headerOf(headers, 'content-type') ?? '';
    this.#reader = new AnswerReader(this.#collector, this.#kept, /^text\/event-stream/i.test(type));
    const decoder = streamDecoder(codingsOf(headers));
    this.#isUnknown = decoder === 'unknown';
    if (typeof decoder === 'string') return;
    this.#decoder = decoder;
    decoder.on('error', () => undefined);
    this.#decoded = new Promise((resolve) => {
      decoder.once('end', resolve);
      decoder.once('close', resolve);
    });
    decoder.pipe(
      new Writable({
        write: (chunk: Buffer, _encoding, done) => {
          this.#reader.write(chunk);
          done();
        },
      }),
    );
  }

  /** Reads a piece of the answer's body as received. */
  write(chunk: Buffer): void {
    if (this.#isUnknown || this.#isLate) return;
    if (this.#decoder === undefined) this.#reader.write(chunk);
    else if (this.#decoder.writableLength > MOST_WAITING) this.#isLate = true;
    else this.#decoder.write(chunk);
  }

  /** Ends the reading and returns the answer. */
  async end(status: number): Promise<TappedAnswer> {
    this.#decoder?.end();
    await this.#decoded;
    this.#decoder?.destroy();
    this.#reader.end();
    return { facts: this.#collector.facts(status), kept: status < 400 ? this.#kept?.json() : undefined };
  }
}
