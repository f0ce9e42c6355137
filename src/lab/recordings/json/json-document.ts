import { none } from 'stream-chain/defs.js';
import { Assembler } from 'stream-json/core/assembler.js';
import { jsonParser, type Token } from 'stream-json/core/parser.js';
import { messageOf } from '../../../values/thrown.js';
import type { OnLoss } from '../importer.js';
import { MAX_LINE_BYTES } from './json-lines.js';
import { MAX_DEPTH } from './json-text.js';

// The library's marker for the end of input. Its types lack the marker, hence the cast.
const END = none as unknown as string;

/**
 * Returns a function that splits JSON text into tokens. Call it with each piece of the text, and
 * with undefined at the end. A string or number is one token. The text may have several values in a
 * row.
 *
 * The function throws an Error if the text is not JSON or ends inside a value.
 */
export function createTokenizer(): (piece: string | undefined) => Iterable<Token> {
  const parse = jsonParser({ packValues: true, streamValues: false, jsonStreaming: true });
  return (piece) => {
    const tokens = parse(piece ?? END);
    return typeof tokens === 'object' && 'values' in tokens ? tokens.values : [];
  };
}

/**
 * Number of characters that are parsed at a time. A syntax error loses all values of its piece, so
 * pieces are short.
 */
const SLICE_CHARS = 8 * 1024;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

/**
 * Decodes bytes to pieces of text, followed by undefined. Bytes that are not UTF-8 are replaced and
 * reported once.
 */
async function* decoded(chunks: AsyncIterable<Buffer>, onLoss: OnLoss): AsyncIterable<string | undefined> {
  let decoder = new TextDecoder('utf-8', { fatal: true });
  let bytes = 0;
  for await (const chunk of chunks) {
    if (bytes === 0 && chunk.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK)) {
      onLoss({ reason: 'repaired-text', place: 'byte 0', detail: 'a byte order mark was removed' });
    }
    let text: string;
    try {
      text = decoder.decode(chunk, { stream: true });
    } catch {
      if (decoder.fatal)
        onLoss({
          reason: 'repaired-text',
          place: `byte ${bytes}`,
          detail: 'bytes that are not UTF-8 were replaced by U+FFFD',
        });
      decoder = new TextDecoder('utf-8');
      text = decoder.decode(chunk, { stream: true });
    }
    bytes += chunk.length;
    for (let from = 0; from < text.length; from += SLICE_CHARS) yield text.slice(from, from + SLICE_CHARS);
  }
  yield undefined;
}

/**
 * Streams the values that match a shape from one or several large JSON documents, in order. Holds
 * one item in memory. Never throws because of a document's content.
 *
 * If a document ends early or has a syntax error, the items before it are yielded. An early end is
 * the loss `truncated-file`. Syntax errors, and items that are too large or nested too deeply, are
 * `malformed-record`. Replaced bytes are `repaired-text`.
 */
export async function* documentItems(
  chunks: AsyncIterable<Buffer>,
  shape: DocumentShape,
  onLoss: OnLoss,
): AsyncIterable<DocumentItem> {
  const tokensOf = createTokenizer();
  const walk = new DocumentWalk(shape, onLoss);
  for await (const piece of decoded(chunks, onLoss)) {
    const ended = piece === undefined;
    const items: DocumentItem[] = [];
    try {
      for (const token of tokensOf(piece)) {
        const item = walk.consume(token);
        if (item !== undefined) items.push(item);
      }
      if (ended && walk.inside) throw new SyntaxError('the document is not at its end');
    } catch (error) {
      const place = walk.place === '' ? 'document' : walk.place;
      if (ended) onLoss({ reason: 'truncated-file', place, detail: 'the file ends inside a value' });
      else
        onLoss({
          reason: 'malformed-record',
          place,
          detail: `not JSON, the rest is not read: ${messageOf(error)}`,
        });
      return;
    }
    yield* items;
  }
}

/** The path of a value in a JSON document: keys and positions. */
export type DocumentPath = readonly (string | number)[];

/** Selects the values to read from a JSON document. */
export interface DocumentShape {
  /** Patterns of the values to yield, such as `messages.*`. `*` matches any list position. */
  readonly items: readonly string[];
  /** Patterns of parts to leave out of the items, such as `trajectory.*.query`. */
  readonly skip?: readonly string[];
}

type Pattern = readonly string[];

const fits = (step: string | number | undefined, part: string | undefined): boolean =>
  part === '*' ? typeof step === 'number' : String(step) === part;
const begins = (path: DocumentPath, pattern: Pattern): boolean =>
  path.every((step, index) => fits(step, pattern[index]));
const same = (path: DocumentPath, pattern: Pattern): boolean => path.length === pattern.length && begins(path, pattern);

function placeOf(path: DocumentPath): string {
  return path
    .map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${step}`))
    .join('');
}

/** A value that matches the shape. */
export interface DocumentItem {
  readonly path: DocumentPath;
  /** The path as people write it: `history[12]`, `[3].traj[5]`. */
  readonly place: string;
  readonly value: unknown;
}

/** Maximum number of characters of an item. */
const MAX_ITEM_CHARS = MAX_LINE_BYTES;

interface Frame {
  readonly list: boolean;
  key: string | number;
}

/** An item that is being built. */
interface OpenItem {
  readonly built: Assembler;
  readonly depth: number;
  size: number;
}

const OPENING: ReadonlySet<string> = new Set(['startObject', 'startArray']);
const CLOSING: ReadonlySet<string> = new Set(['endObject', 'endArray']);

/**
 * Reads the tokens of a document and builds the items that match. Keeps no other values in memory.
 */
class DocumentWalk {
  readonly #items: readonly Pattern[];
  readonly #skips: readonly Pattern[];
  readonly #onLoss: OnLoss;
  readonly #frames: Frame[] = [];
  /**
   * Nesting depth inside a skipped part; 1 for the part's own container, 0 outside of skipped
   * parts.
   */
  #skipped = 0;
  #item: OpenItem | undefined;

  constructor({ items, skip = [] }: DocumentShape, onLoss: OnLoss) {
    this.#items = items.map((pattern) => pattern.split('.'));
    this.#skips = skip.map((pattern) => pattern.split('.'));
    this.#onLoss = onLoss;
  }

  /** Whether a container is still open. */
  get inside(): boolean {
    return this.#frames.length > 0;
  }

  /** The path of the current value. */
  get place(): string {
    return placeOf(this.#path());
  }

  /** Takes the next token. Returns the item that it completes, if any. */
  consume(token: Token): DocumentItem | undefined {
    if (token.name === 'keyValue') {
      const frame = this.#frames.at(-1);
      if (frame !== undefined) frame.key = token.value;
      if (this.#skipped === 0) this.#item?.built.consume(token);
      return undefined;
    }
    if (CLOSING.has(token.name)) return this.#close(token);
    const frame = this.#frames.at(-1);
    if (frame?.list === true && typeof frame.key === 'number') frame.key += 1;
    const opens = OPENING.has(token.name);
    const skipping = this.#skipped > 0;
    if (skipping && opens) this.#skipped += 1;
    const done = skipping
      ? undefined
      : this.#item === undefined
        ? this.#begin(token, opens)
        : this.#extend(this.#item, token, opens);
    if (opens) this.#frames.push({ list: token.name === 'startArray', key: token.name === 'startArray' ? -1 : '' });
    return done;
  }

  #path(): (string | number)[] {
    return this.#frames.map(({ key }) => key);
  }

  #begin(token: Token, opens: boolean): DocumentItem | undefined {
    const path = this.#path();
    if (!this.#items.some((pattern) => same(path, pattern))) {
      const above = this.#items.some((pattern) => path.length < pattern.length && begins(path, pattern));
      if (opens && !above) this.#skipped = 1;
      return undefined;
    }
    if (!opens) return { path, place: placeOf(path), value: scalarOf(token) };
    this.#item = { built: new Assembler(), depth: this.#frames.length, size: 0 };
    this.#item.built.consume(token);
    return undefined;
  }

  #extend(item: OpenItem, token: Token, opens: boolean): undefined {
    item.size += 'value' in token && typeof token.value === 'string' ? token.value.length : 1;
    const deep = this.#frames.length - item.depth > MAX_DEPTH;
    if (deep || item.size > MAX_ITEM_CHARS) {
      const place = placeOf(this.#path().slice(0, item.depth));
      const detail = deep ? `nested over ${MAX_DEPTH} deep: left out` : `over ${MAX_ITEM_CHARS} characters: left out`;
      this.#onLoss({ reason: 'malformed-record', place, detail });
      this.#skipped = this.#frames.length - item.depth + (opens ? 1 : 0);
      this.#item = undefined;
    } else if (this.#skips.some((pattern) => same(this.#path(), pattern))) this.#skipped = opens ? 1 : 0;
    else item.built.consume(token);
  }

  #close(token: Token): DocumentItem | undefined {
    this.#frames.pop();
    if (this.#skipped > 0) {
      this.#skipped -= 1;
      return undefined;
    }
    const item = this.#item;
    if (item === undefined) return undefined;
    item.built.consume(token);
    if (this.#frames.length > item.depth) return undefined;
    this.#item = undefined;
    const path = this.#path();
    return { path, place: placeOf(path), value: item.built.current };
  }
}

function scalarOf(token: Token): unknown {
  if (token.name === 'numberValue') return Number(token.value);
  return 'value' in token ? token.value : undefined;
}
