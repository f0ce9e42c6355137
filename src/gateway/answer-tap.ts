import { type Transform, Writable } from 'node:stream';
import { AnswerCollector, type AnswerFacts } from './answer-facts.js';
import { streamDecoder } from './content-encoding.js';
import { headerOf, type RawHeaders } from './raw-headers.js';
import type { Wire } from './wires.js';

/** Maximum size of an answer without a stream, and of one event, that is read. */
const MOST_TEXT = 32 * 1_048_576;
/** If the decoder is this many bytes behind, the rest of the answer is not read. */
const MOST_WAITING = 8 * 1_048_576;

const LINE_END = 0x0a;

/** Splits the text of an answer into the events of a stream, or keeps it whole. */
class AnswerReader {
  readonly #collector: AnswerCollector;
  readonly #isStream: boolean;
  #waiting: Buffer[] = [];
  #size = 0;
  #data: string[] = [];
  #isOver = false;

  constructor(collector: AnswerCollector, isStream: boolean) {
    this.#collector = collector;
    this.#isStream = isStream;
  }

  write(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#waiting.push(chunk);
    this.#size += chunk.length;
    if (this.#size > MOST_TEXT) {
      this.#isOver = true;
      this.#waiting = [];
    } else if (this.#isStream && chunk.includes(LINE_END)) this.#lines();
  }

  end(): void {
    if (this.#isOver) return;
    if (this.#isStream) {
      this.#lines(true);
      this.#dispatch();
      return;
    }
    const whole = parsed(Buffer.concat(this.#waiting).toString('utf8'));
    if (whole !== undefined) this.#collector.takeWhole(whole);
  }

  #lines(isEnd = false): void {
    const all = this.#waiting.length === 1 ? (this.#waiting[0] as Buffer) : Buffer.concat(this.#waiting);
    const end = isEnd ? all.length : all.lastIndexOf(LINE_END) + 1;
    this.#waiting = end === all.length ? [] : [all.subarray(end)];
    this.#size = all.length - end;
    for (const line of all.toString('utf8', 0, end).split(/\r\n|\n|\r/)) {
      if (line === '') this.#dispatch();
      else if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
  }

  #dispatch(): void {
    const [data] = [this.#data.join('\n')];
    this.#data = [];
    if (data === '' || data === '[DONE]') return;
    const event = parsed(data);
    if (event !== undefined) this.#collector.take(event);
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Reads a copy of an answer while it goes to the client. It never slows the answer down and never
 * throws: the facts lack the parts that it cannot read.
 */
export class AnswerTap {
  readonly #collector: AnswerCollector;
  readonly #reader: AnswerReader;
  readonly #decoder: Transform | undefined;
  /** Resolves once the decoder gives no more bytes. It may stop before the end of the answer. */
  readonly #decoded: Promise<void> | undefined;
  readonly #isUnknown: boolean;
  #isLate = false;

  /** `clean` removes credentials from the text of an error. */
  constructor(wire: Wire, headers: RawHeaders, clean: (text: string) => string) {
    this.#collector = new AnswerCollector(wire, clean);
    const type = headerOf(headers, 'content-type') ?? '';
    this.#reader = new AnswerReader(this.#collector, /^text\/event-stream/i.test(type));
    const decoder = streamDecoder(headerOf(headers, 'content-encoding'));
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

  /** Reads a piece of the answer's body as it was received. */
  write(chunk: Buffer): void {
    if (this.#isUnknown || this.#isLate) return;
    if (this.#decoder === undefined) this.#reader.write(chunk);
    else if (this.#decoder.writableLength > MOST_WAITING) this.#isLate = true;
    else this.#decoder.write(chunk);
  }

  /** Ends the copy and returns the facts of the answer. */
  async end(status: number): Promise<AnswerFacts> {
    this.#decoder?.end();
    await this.#decoded;
    this.#decoder?.destroy();
    this.#reader.end();
    return this.#collector.facts(status);
  }
}
