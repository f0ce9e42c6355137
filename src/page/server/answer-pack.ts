import { hash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import type { Packed, PageBlock } from './page-format.js';

/** A written block. */
export interface WrittenBlock extends PageBlock {
  readonly base64: string;
}

/** Approximate characters of a block. */
const BLOCK_CHARS = 1_048_576;
/** Minimum length of a value that becomes a node. Shorter values are written inline. */
const LEAST_NODE = 96;
/** Minimum length of a text that is split into pieces. */
const LEAST_TEXT = 512;
/** Minimum and maximum length of a text's pieces, and the mask for their approximate length. */
const PIECE = { least: 256, most: 8_192, mask: 0x3ff } as const;
/** Lists longer than `most` are written as lists of lists with about `about` items. */
const LIST = { most: 64, about: 32 } as const;

/** Pseudo-random numbers for the rolling hash, the same in every process. */
const GEAR = ((): Uint32Array => {
  const gear = new Uint32Array(256);
  let seed = 0x9e3779b9;
  for (let i = 0; i < gear.length; i += 1) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    gear[i] = seed;
  }
  return gear;
})();

/**
 * Splits a text into pieces. A piece's end depends only on the characters before it, so texts that
 * differ in one place share their other pieces.
 */
export function piecesOf(text: string): readonly string[] {
  const pieces: string[] = [];
  let from = 0;
  let rolling = 0;
  for (let at = 0; at < text.length; at += 1) {
    rolling = ((rolling << 1) + (GEAR[text.charCodeAt(at) & 0xff] ?? 0)) >>> 0;
    const length = at + 1 - from;
    // The upper bits depend on more of the earlier characters than the lower ones.
    const isEnd = length >= PIECE.least && ((rolling >>> 16) & PIECE.mask) === 0;
    if (!isEnd && length < PIECE.most) continue;
    pieces.push(text.slice(from, at + 1));
    [from, rolling] = [at + 1, 0];
  }
  if (from < text.length) pieces.push(text.slice(from));
  return pieces;
}

/**
 * Maximum length of JSON that is cached, and of the whole cache. Most of an answer also occurs in
 * the previous answer.
 */
const RECENT = { longest: 1_024, chars: 16 * 1_048_576 } as const;

/** Whether an object can be written unchanged: no member is nested or long. */
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
 * Deduplicates similar JSON values: equal objects, lists and text pieces are stored once, as
 * numbered nodes. Compression finds only repetitions within some kilobytes.
 */
export class AnswerPack {
  readonly #known = new Map<string, number>();
  readonly #recent = new Map<string, number>();
  #recentChars = 0;
  readonly #onBlock: (block: WrittenBlock) => void;
  #open: string[] = [];
  #openChars = 0;
  #count = 0;

  /** `onBlock` receives each block as soon as it is full. */
  constructor(onBlock: (block: WrittenBlock) => void) {
    this.#onBlock = onBlock;
  }

  /** Packs a value and puts its nodes in blocks. Leaves out undefined members. */
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

  /** Adds a node whose members were added before. Returns the node's number. */
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

  /** No LRU needed: hot entries return soon after the cache is cleared. */
  #remember(json: string, number: number): void {
    if (this.#recentChars > RECENT.chars) {
      this.#recent.clear();
      this.#recentChars = 0;
    }
    this.#recent.set(json, number);
    this.#recentChars += json.length;
  }
}
