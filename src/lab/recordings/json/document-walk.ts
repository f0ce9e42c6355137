import { Assembler } from 'stream-json/core/assembler.js';
import type { Token } from 'stream-json/core/parser.js';
import type { OnLoss } from '../importer.js';
import { MAX_LINE_BYTES } from './json-lines.js';
import { MAX_DEPTH } from './json-text.js';

/** The path of a value in a JSON document: keys and positions from its top. */
export type DocumentPath = readonly (string | number)[];

/** The values of a JSON document that are read. */
export interface DocumentShape {
  /** Patterns of the values that are read one by one, such as `messages.*`; `*` matches any position of a list, an empty pattern the document itself. */
  readonly items: readonly string[];
  /** Patterns of what is left out of the items, such as `trajectory.*.query`. */
  readonly skip?: readonly string[];
}

type Pattern = readonly string[];

const patternOf = (text: string): Pattern => (text === '' ? [] : text.split('.'));

const fits = (step: string | number | undefined, part: string | undefined): boolean =>
  part === '*' ? typeof step === 'number' : String(step) === part;

/** What the walk does with a value outside of an item. */
type ValueUse = 'item' | 'skip' | 'enter';

/** Answers by the path of a value what the walk does with it. */
interface ShapeMatcher {
  outside(path: DocumentPath): ValueUse;
  skipsInside(path: DocumentPath): boolean;
}

function createMatcher(shape: DocumentShape): ShapeMatcher {
  const items = shape.items.map(patternOf);
  const skips = (shape.skip ?? []).map(patternOf);
  const begins = (path: DocumentPath, pattern: Pattern): boolean => path.every((step, index) => fits(step, pattern[index]));
  const same = (path: DocumentPath, pattern: Pattern): boolean => path.length === pattern.length && begins(path, pattern);
  return {
    outside(path) {
      if (items.some((pattern) => same(path, pattern))) return 'item';
      return items.some((pattern) => path.length < pattern.length && begins(path, pattern)) ? 'enter' : 'skip';
    },
    skipsInside: (path) => skips.some((pattern) => same(path, pattern)),
  };
}

/** A path as people write it: `history[12]`, `[3].traj[5]`. */
function placeOf(path: DocumentPath): string {
  return path.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index === 0 ? '' : '.'}${step}`)).join('');
}

/** A value that the shape of a document asks for. */
export interface DocumentItem {
  readonly path: DocumentPath;
  readonly value: unknown;
}

/** The largest item that is read, characters. */
const MAX_ITEM_CHARS = MAX_LINE_BYTES;

interface Frame {
  readonly list: boolean;
  key: string | number;
}

/** An item that is being assembled. */
interface OpenItem {
  readonly built: Assembler;
  readonly depth: number;
  size: number;
}

const OPENING: ReadonlySet<string> = new Set(['startObject', 'startArray']);
const CLOSING: ReadonlySet<string> = new Set(['endObject', 'endArray']);

/** Follows the tokens of a document and assembles its items. Whatever the shape does not ask for is never in memory. */
export class DocumentWalk {
  readonly #matcher: ShapeMatcher;
  readonly #onLoss: OnLoss;
  readonly #frames: Frame[] = [];
  /** How many containers are open from the one that is left out downwards; 0 where none is left out. */
  #skipped = 0;
  #item: OpenItem | undefined;

  constructor(shape: DocumentShape, onLoss: OnLoss) {
    this.#matcher = createMatcher(shape);
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

  /** Takes the next token and returns the item that it ends; undefined where it ends none. */
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
    const done = skipping ? undefined : this.#item === undefined ? this.#begin(token, opens) : this.#extend(this.#item, token, opens);
    if (opens) this.#frames.push({ list: token.name === 'startArray', key: token.name === 'startArray' ? -1 : '' });
    return done;
  }

  #path(): (string | number)[] {
    return this.#frames.map(({ key }) => key);
  }

  #begin(token: Token, opens: boolean): DocumentItem | undefined {
    const path = this.#path();
    const use = this.#matcher.outside(path);
    if (use === 'item' && !opens) return { path, value: scalarOf(token) };
    if (use === 'item') {
      this.#item = { built: new Assembler(), depth: this.#frames.length, size: 0 };
      this.#item.built.consume(token);
    } else if (use === 'skip' && opens) this.#skipped = 1;
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
    } else if (this.#matcher.skipsInside(this.#path())) this.#skipped = opens ? 1 : 0;
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
    return { path: this.#path(), value: item.built.current };
  }
}

function scalarOf(token: Token): unknown {
  if (token.name === 'numberValue') return Number(token.value);
  return 'value' in token ? token.value : undefined;
}
