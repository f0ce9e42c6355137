import { BUCKETS, GramCollector, keyBucket, LONGEST_LITERAL } from './grams.js';
import { type BucketBlocks, encodeGroup, GROUP } from './postings.js';
import type { SegmentParts } from './segment-file.js';

/** An entry of an index. Searches find it by its keys and its text. */
export interface IndexEntry {
  /** The caller's description of the entry, stored as JSON. */
  readonly line: unknown;
  /** The order of the entry. Entries with a higher number are newer. */
  readonly at: number;
  /** Kind of the entry, from 0 to 255. */
  readonly kind: number;
  readonly keys: readonly string[];
  readonly text?: string | undefined;
  /** Identifies the text if other entries may have the same text. Such entries have no keys. */
  readonly hash?: string | undefined;
}

/** Pairs of a small block. Such blocks are numbered last, so that other gaps stay small. */
const FEW_PAIRS = 512;
/** UTF-16 units of a block. Long texts have several, so that they are not found by everything. */
const BLOCK = 16_384;
/** Pairs of bucket and block in memory, each of four bytes, from which a draft is written. */
const MANY_PAIRS = 12_000_000;

/** Shared by all drafts, because it is large and no two drafts collect at the same time. */
let collector: GramCollector | undefined;

/** Collects entries in memory and encodes them as one segment. */
export class SegmentDraft {
  readonly #lines: string[] = [];
  readonly #ats: number[] = [];
  readonly #kinds: number[] = [];
  /** Number of the text of each entry. Entries with equal texts share one. */
  readonly #textOf: number[] = [];
  readonly #owners: number[] = [];
  readonly #texts = new Map<string, number>();
  #textCount = 0;
  /** The buckets of all blocks in order, and where those of each block end. */
  #buckets = new Uint32Array(1 << 16);
  #pairs = 0;
  readonly #ends: number[] = [];
  #units = 0;

  get entries(): number {
    return this.#lines.length;
  }

  /** Whether it should be written before more entries are added. */
  get isFull(): boolean {
    return this.#pairs > MANY_PAIRS;
  }

  add({ line, at, kind, keys, text = '', hash }: IndexEntry): void {
    const known = hash === undefined ? undefined : this.#texts.get(hash);
    this.#textOf.push(known ?? this.#textCount);
    this.#lines.push(JSON.stringify(line));
    this.#ats.push(at);
    this.#kinds.push(kind);
    if (known !== undefined) return;
    const number = this.#textCount++;
    if (hash !== undefined) this.#texts.set(hash, number);
    collector ??= new GramCollector();
    const keyed = [...new Set(keys.map(keyBucket))];
    for (let from = 0; from === 0 || from < text.length; from += BLOCK) {
      this.#owners.push(number);
      const end = Math.min(text.length, from + BLOCK + LONGEST_LITERAL);
      this.#reserve(2 * (end - from) + keyed.length);
      this.#pairs = collector.collect(text, { from, end }, { found: this.#buckets, size: this.#pairs });
      for (const bucket of from === 0 ? keyed : []) this.#buckets[this.#pairs++] = bucket;
      this.#ends.push(this.#pairs);
    }
    this.#units += text.length;
  }

  #reserve(pairs: number): void {
    const needed = this.#pairs + pairs;
    if (needed <= this.#buckets.length) return;
    const next = new Uint32Array(Math.max(needed, this.#buckets.length * 2));
    next.set(this.#buckets.subarray(0, this.#pairs));
    this.#buckets = next;
  }

  /** Returns the parts of the segment. Blocks of one bucket stay in ascending order. */
  parts(): SegmentParts {
    const sizes = this.#ends.map((end, block) => end - (this.#ends[block - 1] ?? 0));
    const blocks = [...sizes.keys()];
    const order = [
      ...blocks.filter((block) => (sizes[block] ?? 0) >= FEW_PAIRS),
      ...blocks.filter((block) => (sizes[block] ?? 0) < FEW_PAIRS),
    ];
    return {
      units: this.#units,
      lines: this.#lines,
      ats: Float64Array.from(this.#ats),
      kinds: Uint8Array.from(this.#kinds),
      texts: Uint32Array.from(this.#textOf),
      owners: Uint32Array.from(order, (block) => this.#owners[block] ?? 0),
      groups: this.#groups(order),
    };
  }

  *#groups(order: readonly number[]): Generator<Buffer> {
    const parts = order.map((block) => this.#buckets.subarray(this.#ends[block - 1] ?? 0, this.#ends[block]));
    const { starts, blocks } = blocksOf(parts, this.#pairs);
    for (let first = 0; first < BUCKETS; first += GROUP) {
      const group: BucketBlocks[] = [];
      for (let bucket = 0; bucket < GROUP; bucket += 1) {
        const [from = 0, end = 0] = [starts[first + bucket], starts[first + bucket + 1]];
        if (from < end) group.push({ bucket, blocks: blocks.subarray(from, end) });
      }
      yield group.length === 0 ? Buffer.alloc(0) : encodeGroup(group);
    }
  }
}

/** Returns the blocks of each bucket, ascending, and where those of a bucket begin. */
function blocksOf(
  bucketsOfBlocks: readonly Uint32Array[],
  pairs: number,
): { readonly starts: Uint32Array; readonly blocks: Uint32Array } {
  const starts = new Uint32Array(BUCKETS + 1);
  // An iterator of numbers takes several times as long.
  for (const buckets of bucketsOfBlocks) {
    for (let i = 0; i < buckets.length; i += 1) {
      const after = (buckets[i] as number) + 1;
      starts[after] = (starts[after] as number) + 1;
    }
  }
  for (let i = 1; i < starts.length; i += 1) starts[i] = (starts[i] as number) + (starts[i - 1] as number);
  const [next, blocks] = [starts.slice(), new Uint32Array(pairs)];
  for (const [block, buckets] of bucketsOfBlocks.entries()) {
    for (let i = 0; i < buckets.length; i += 1) {
      const bucket = buckets[i] as number;
      const place = next[bucket] as number;
      blocks[place] = block;
      next[bucket] = place + 1;
    }
  }
  return { starts, blocks };
}
