import { hash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Packed, PageBlock } from './page-format.js';

/** A block as it is written. */
export interface WrittenBlock extends PageBlock {
  readonly base64: string;
}

/** Characters of a block, about. */
const BLOCK_CHARS = 1_048_576;
/** Shorter values stand where they are. */
const LEAST_NODE = 96;
/** Shorter texts are one piece. */
const LEAST_TEXT = 512;
/** How long the pieces of a text are: at least, at most, and about. */
const PIECE = { least: 256, most: 8_192, mask: 0x3ff } as const;
/** Longer lists are written as lists of lists, of about so many. */
const LIST = { most: 64, about: 32 } as const;

/** Numbers that look like random ones, the same in each process. */
const GEAR = ((): Uint32Array => {
  const gear = new Uint32Array(256);
  let seed = 0x9e3779b9;
  for (let i = 0; i < gear.length; i += 1) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    gear[i] = seed;
  }
  return gear;
})();

/** The pieces of a text: where one ends depends on the characters before it alone, so that texts which differ in one place share their other pieces. */
export function piecesOf(text: string): readonly string[] {
  const pieces: string[] = [];
  let from = 0;
  let rolling = 0;
  for (let at = 0; at < text.length; at += 1) {
    rolling = ((rolling << 1) + (GEAR[text.charCodeAt(at) & 0xff] ?? 0)) >>> 0;
    const length = at + 1 - from;
    // The upper bits hold what stood before, too.
    const isEnd = length >= PIECE.least && ((rolling >>> 16) & PIECE.mask) === 0;
    if (!isEnd && length < PIECE.most) continue;
    pieces.push(text.slice(from, at + 1));
    [from, rolling] = [at + 1, 0];
  }
  if (from < text.length) pieces.push(text.slice(from));
  return pieces;
}

/** Longest JSON, and how much of it, that is looked up as it is: most of what an answer has stands in the one before, too. */
const RECENT = { longest: 1_024, chars: 16 * 1_048_576 } as const;

/** Whether a value is an object that is written as it is: its members hold nothing that has members or is long. */
function isFlat(value: object): value is Packed & object {
  for (const name in value) {
    const one = (value as Readonly<Record<string, unknown>>)[name];
    if (name === '$' || (typeof one === 'string' ? one.length >= LEAST_TEXT : typeof one === 'object' && one !== null))
      return false;
  }
  return true;
}

const nodeOf = (value: Packed): number | undefined => {
  const reference = typeof value === 'object' && value !== null && '$' in value ? value.$ : undefined;
  return typeof reference === 'number' ? reference : undefined;
};

/**
 * Writes many values of JSON that are mostly alike so that what they share is written once: each object, list and piece of a text is a node, and equal ones are one node. Compression by itself finds what is
 * repeated within some kilobytes alone.
 */
export class AnswerPack {
  readonly #known = new Map<string, number>();
  readonly #recent = new Map<string, number>();
  #recentChars = 0;
  readonly #onBlock: (block: WrittenBlock) => void;
  #open: string[] = [];
  #openChars = 0;
  #count = 0;

  /** `onBlock` is given each block as soon as it is full. */
  constructor(onBlock: (block: WrittenBlock) => void) {
    this.#onBlock = onBlock;
  }

  /** A value as it is written, its nodes in blocks. Members that are undefined are left out. */
  add(value: unknown): Packed {
    if (typeof value === 'string') return value.length < LEAST_TEXT ? value : this.#text(value);
    if (Array.isArray(value)) return this.#list(value.map((one) => this.add(one ?? null)));
    if (typeof value !== 'object' || value === null) return value as null | boolean | number;
    if (isFlat(value)) return this.#kept(value);
    const members = Object.entries(value).flatMap(([name, one]): [string, Packed][] =>
      one === undefined ? [] : [[name, this.add(one)]],
    );
    return this.#kept(Object.hasOwn(value, '$') ? { $: { o: members } } : Object.fromEntries(members));
  }

  /** A node of its own whose members are values that were added. */
  members(added: ReadonlyMap<string, Packed>): number {
    return this.#node(JSON.stringify(Object.fromEntries(added)));
  }

  /** Ends the last block. */
  end(): void {
    if (this.#open.length === 0) return;
    const json = Buffer.from(`[${this.#open.join(',')}]`);
    const base64 = gzipSync(json, { level: 9 }).toString('base64');
    const nodes = this.#open.length;
    [this.#open, this.#openChars] = [[], 0];
    this.#onBlock({ nodes, bytes: json.length, sha256: hash('sha256', json), base64 });
  }

  #text(text: string): Packed {
    return { $: { t: piecesOf(text).map((piece) => this.#node(JSON.stringify(piece))) } };
  }

  #list(list: readonly Packed[]): Packed {
    if (list.length <= LIST.most) return this.#kept(this.#flat(list));
    const lists: number[] = [];
    let part: Packed[] = [];
    for (const one of list) {
      part.push(one);
      const place = nodeOf(one) ?? JSON.stringify(one).length;
      if (place % LIST.about !== 0 && part.length < LIST.most) continue;
      lists.push(this.#node(JSON.stringify(this.#flat(part))));
      part = [];
    }
    if (part.length > 0) lists.push(this.#node(JSON.stringify(this.#flat(part))));
    return this.#kept({ $: { l: lists } });
  }

  #flat(list: readonly Packed[]): Packed {
    const nodes = list.map(nodeOf);
    return list.length > 0 && nodes.every((node) => node !== undefined) ? { $: nodes as readonly number[] } : list;
  }

  #kept(value: Packed): Packed {
    const json = JSON.stringify(value);
    return json.length < LEAST_NODE ? value : { $: this.#node(json) };
  }

  #node(json: string): number {
    const recent = json.length > RECENT.longest ? undefined : this.#recent.get(json);
    if (recent !== undefined) return recent;
    const key = hash('sha256', json, 'base64');
    const known = this.#known.get(key);
    const number = known ?? this.#count;
    if (json.length <= RECENT.longest) this.#remember(json, number);
    if (known !== undefined) return known;
    this.#known.set(key, number);
    this.#count += 1;
    this.#open.push(json);
    this.#openChars += json.length;
    if (this.#openChars >= BLOCK_CHARS) this.end();
    return number;
  }

  /** What was not met for long is not told from the rest: all of it is met again soon, or not at all. */
  #remember(json: string, number: number): void {
    if (this.#recentChars > RECENT.chars) {
      this.#recent.clear();
      this.#recentChars = 0;
    }
    this.#recent.set(json, number);
    this.#recentChars += json.length;
  }
}
