import { BUCKETS, GramCollector, keyBucket, LONGEST_LITERAL } from './grams.js';
import { type BucketBlocks, checksum, encodeGroup, GROUP } from './postings.js';
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

/** UTF-16 units of a block. As one block, a long text would be found by almost any search. */
const BLOCK = 16_384;
/** Number of pairs of bucket and block after which a draft is full. Each pair takes eight bytes. */
const MANY_PAIRS = 6_000_000;

/** Shared by all drafts, because it is large and no two drafts collect at the same time. */
let collector: GramCollector | undefined;

/** Collects entries in memory and encodes them as one segment. */
export class SegmentDraft {
  readonly #lines: Buffer[] = [];
  readonly #ats: number[] = [];
  readonly #kinds: number[] = [];
  /** Number of the text of each entry. Entries with equal texts share one. */
  readonly #textOf: number[] = [];
  readonly #owners: number[] = [];
  readonly #texts = new Map<string, number>();
  #textCount = 0;
  #buckets = new Uint32Array(1 << 16);
  #blocks = new Uint32Array(1 << 16);
  #pairs = 0;
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
    const json = Buffer.from(JSON.stringify(line));
    const sum = Buffer.alloc(4);
    sum.writeUInt32LE(checksum(json));
    this.#lines.push(Buffer.concat([sum, json]));
    this.#ats.push(at);
    this.#kinds.push(kind);
    if (known !== undefined) return;
    const number = this.#textCount++;
    if (hash !== undefined) this.#texts.set(hash, number);
    collector ??= new GramCollector();
    const first = this.#owners.length;
    for (let from = 0; from === 0 || from < text.length; from += BLOCK) {
      const block = this.#owners.length;
      this.#owners.push(number);
      const end = Math.min(text.length, from + BLOCK + LONGEST_LITERAL);
      if (end - from > 2) collector.collect(text, { from, end }, (bucket) => this.#pair(bucket, block));
    }
    for (const bucket of new Set(keys.map(keyBucket))) this.#pair(bucket, first);
    this.#units += text.length;
  }

  #pair(bucket: number, block: number): void {
    if (this.#pairs === this.#buckets.length) {
      const [buckets, blocks] = [this.#buckets, this.#blocks];
      this.#buckets = new Uint32Array(buckets.length * 2);
      this.#blocks = new Uint32Array(buckets.length * 2);
      this.#buckets.set(buckets);
      this.#blocks.set(blocks);
    }
    this.#buckets[this.#pairs] = bucket;
    this.#blocks[this.#pairs] = block;
    this.#pairs += 1;
  }

  /** Returns the parts of the segment. Blocks of one bucket stay in ascending order. */
  parts(): SegmentParts {
    return {
      units: this.#units,
      lines: this.#lines,
      ats: Float64Array.from(this.#ats),
      kinds: Uint8Array.from(this.#kinds),
      texts: Uint32Array.from(this.#textOf),
      owners: Uint32Array.from(this.#owners),
      groups: this.#groups(),
    };
  }

  *#groups(): Generator<Buffer> {
    const [buckets, blocks] = [new Uint32Array(this.#pairs), new Uint32Array(this.#pairs)];
    const starts = new Uint32Array(BUCKETS / GROUP + 1);
    for (let i = 0; i < this.#pairs; i += 1) count(starts, (this.#buckets[i] ?? 0) / GROUP);
    const next = summed(starts);
    for (let i = 0; i < this.#pairs; i += 1) {
      const place = take(next, (this.#buckets[i] ?? 0) / GROUP);
      buckets[place] = (this.#buckets[i] ?? 0) % GROUP;
      blocks[place] = this.#blocks[i] ?? 0;
    }
    for (let group = 0; group < BUCKETS / GROUP; group += 1) {
      const [from = 0, end = 0] = [starts[group], starts[group + 1]];
      yield from === end
        ? Buffer.alloc(0)
        : encodeGroup(bucketsOf(buckets.subarray(from, end), blocks.subarray(from, end)), this.#owners.length);
    }
  }
}

const count = (counts: Uint32Array, at: number): void => {
  const place = Math.floor(at) + 1;
  counts[place] = (counts[place] ?? 0) + 1;
};

/** Turns counts into the offsets at which their items begin. Returns a copy to advance. */
function summed(counts: Uint32Array): Uint32Array {
  for (let i = 1; i < counts.length; i += 1) counts[i] = (counts[i] ?? 0) + (counts[i - 1] ?? 0);
  return counts.slice();
}

const take = (next: Uint32Array, at: number): number => {
  const place = Math.floor(at);
  const taken = next[place] ?? 0;
  next[place] = taken + 1;
  return taken;
};

/** Returns the buckets of one group. Blocks of one bucket keep their ascending order. */
function bucketsOf(buckets: Uint32Array, blocks: Uint32Array): readonly BucketBlocks[] {
  const starts = new Uint32Array(GROUP + 1);
  for (const bucket of buckets) count(starts, bucket);
  const next = summed(starts);
  const sorted = new Uint32Array(blocks.length);
  for (const [i, bucket] of buckets.entries()) sorted[take(next, bucket)] = blocks[i] ?? 0;
  const found: BucketBlocks[] = [];
  for (let bucket = 0; bucket < GROUP; bucket += 1) {
    const [from = 0, end = 0] = [starts[bucket], starts[bucket + 1]];
    if (from < end) found.push({ bucket, blocks: sorted.subarray(from, end) });
  }
  return found;
}
