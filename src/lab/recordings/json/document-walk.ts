import { Assembler } from 'stream-json/core/assembler.js';
import type { OnLoss } from '../importer.js';
import { createMatcher, type DocumentPath, type DocumentShape, placeOf } from './document-shape.js';
import { MAX_LINE_BYTES } from './json-lines.js';
import type { Token } from './json-tokens.js';

/** One value of a document that its shape asks for. */
export interface DocumentItem {
  readonly path: DocumentPath;
  readonly value: unknown;
}

/** The largest item that is read, characters. */
export const MAX_ITEM_CHARS = MAX_LINE_BYTES;
/** Items that are nested deeper are no recording. */
export const MAX_ITEM_DEPTH = 512;

interface Frame {
  readonly list: boolean;
  key: string | number;
}

const OPENING: ReadonlySet<string> = new Set(['startObject', 'startArray']);
const CLOSING: ReadonlySet<string> = new Set(['endObject', 'endArray']);

/** Follows the tokens of a document and puts its items together; whatever the shape does not ask for is never in memory. */
export class DocumentWalk {
  private readonly matcher;
  private readonly frames: Frame[] = [];
  /** Containers that are open below the one that is left out; 0 where none is. */
  private skipped = 0;
  private item: { readonly built: Assembler; readonly depth: number; size: number } | undefined;

  constructor(
    shape: DocumentShape,
    private readonly onLoss: OnLoss,
  ) {
    this.matcher = createMatcher(shape);
  }

  /** Whether a value is not at its end. */
  get inside(): boolean {
    return this.frames.length > 0;
  }

  /** Where the walk stands. */
  get place(): string {
    return placeOf(this.path());
  }

  /** Takes the next token; the item that it ends. */
  consume(token: Token): DocumentItem | undefined {
    if (token.name === 'keyValue') {
      const frame = this.frames.at(-1);
      if (frame !== undefined) frame.key = token.value;
      if (this.skipped === 0) this.item?.built.consume(token);
      return undefined;
    }
    if (CLOSING.has(token.name)) return this.close(token);
    const frame = this.frames.at(-1);
    if (frame?.list === true && typeof frame.key === 'number') frame.key += 1;
    const opens = OPENING.has(token.name);
    const done = this.skipped > 0 ? this.skipOn(opens) : this.begin(token, opens);
    if (opens) this.frames.push({ list: token.name === 'startArray', key: token.name === 'startArray' ? -1 : '' });
    return done;
  }

  private path(): (string | number)[] {
    return this.frames.map(({ key }) => key);
  }

  private skipOn(opens: boolean): undefined {
    if (opens) this.skipped += 1;
    return undefined;
  }

  private begin(token: Token, opens: boolean): DocumentItem | undefined {
    if (this.item !== undefined) {
      this.goOn(token, opens);
      return undefined;
    }
    const path = this.path();
    const use = this.matcher.outside(path);
    if (use === 'item' && !opens) return { path, value: scalarOf(token) };
    if (use === 'item') {
      this.item = { built: new Assembler(), depth: this.frames.length, size: 0 };
      this.item.built.consume(token);
    } else if (use === 'skip' && opens) this.skipped = 1;
    return undefined;
  }

  private goOn(token: Token, opens: boolean): void {
    const { item } = this;
    if (item === undefined) return;
    item.size += 'value' in token && typeof token.value === 'string' ? token.value.length : 1;
    const deep = this.frames.length - item.depth > MAX_ITEM_DEPTH;
    if (deep || item.size > MAX_ITEM_CHARS) {
      const place = placeOf(this.path().slice(0, item.depth));
      const detail = deep ? `nested over ${MAX_ITEM_DEPTH} deep: left out` : `over ${MAX_ITEM_CHARS} characters: left out`;
      this.onLoss({ reason: 'malformed-record', place, detail });
      this.skipped = this.frames.length - item.depth + (opens ? 1 : 0);
      this.item = undefined;
    } else if (this.matcher.skipsInside(this.path())) this.skipOn(opens);
    else item.built.consume(token);
  }

  private close(token: Token): DocumentItem | undefined {
    this.frames.pop();
    if (this.skipped > 0) {
      this.skipped -= 1;
      return undefined;
    }
    const { item } = this;
    if (item === undefined) return undefined;
    item.built.consume(token);
    if (this.frames.length > item.depth) return undefined;
    this.item = undefined;
    return { path: this.path(), value: item.built.current };
  }
}

function scalarOf(token: Token): unknown {
  if (token.name === 'numberValue') return Number(token.value);
  return 'value' in token ? token.value : undefined;
}
