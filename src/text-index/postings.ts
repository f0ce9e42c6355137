import { IndexDamage } from './index-damage.js';

/** Number of buckets in a group. A group is read as a whole. */
export const GROUP = 256;

/** Returns the checksum of some bytes. It detects accidental damage, but not manipulation. */
export function checksum(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  // A `for...of` loop takes five times as long.
  for (let i = 0; i < bytes.length; i += 1) hash = Math.imul(hash ^ (bytes[i] as number), 0x01000193);
  return hash >>> 0;
}

/** Maximum bytes that one write appends: a number with seven bits per byte, or a run of bits. */
const MOST_WRITTEN = 8;

/** A growing buffer: numbers with seven bits per byte, then bits, the lowest of a byte first. */
class ByteSink {
  #bytes = Buffer.allocUnsafe(8_192);
  #size = 0;
  #waiting = 0;
  #count = 0;

  /** Empties the buffer and reserves room for the checksum. */
  begin(): void {
    [this.#size, this.#waiting, this.#count] = [4, 0, 0];
  }

  number(value: number): void {
    this.#reserve();
    let rest = value;
    while (rest > 127) {
      this.#bytes[this.#size++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.#bytes[this.#size++] = rest;
  }

  /** Writes at most 24 bits. */
  bits(value: number, count: number): void {
    this.#reserve();
    this.#waiting |= value << this.#count;
    this.#count += count;
    while (this.#count >= 8) {
      this.#bytes[this.#size++] = this.#waiting & 255;
      this.#waiting >>>= 8;
      this.#count -= 8;
    }
  }

  /** Returns a copy of all bytes with their checksum. */
  end(): Buffer {
    this.#reserve();
    if (this.#count > 0) this.#bytes[this.#size++] = this.#waiting;
    this.#bytes.writeUInt32LE(checksum(this.#bytes.subarray(4, this.#size)));
    return Buffer.from(this.#bytes.subarray(0, this.#size));
  }

  #reserve(): void {
    if (this.#size + MOST_WRITTEN <= this.#bytes.length) return;
    const next = Buffer.allocUnsafe(this.#bytes.length * 2);
    next.set(this.#bytes.subarray(0, this.#size));
    this.#bytes = next;
  }
}

/** A bucket of a group: its place in the group, and its ascending block numbers. */
export interface BucketBlocks {
  readonly bucket: number;
  readonly blocks: Uint32Array;
}

/** Returns the number of plain low bits of a gap (Rice coding), for evenly spread blocks. */
const plainBits = (blocks: number, found: number): number =>
  Math.max(0, Math.floor(Math.log2((0.69 * blocks) / Math.max(1, found))));

/** Maximum number of bits that one write or read handles. */
const AT_ONCE = 24;
const sink = new ByteSink();

/**
 * Encodes one group of buckets: a checksum, the numbers of blocks, and the gaps between them.
 * `total` is the number of blocks of the segment.
 */
export function encodeGroup(buckets: readonly BucketBlocks[], total: number): Buffer {
  sink.begin();
  sink.number(buckets.length);
  for (const { bucket, blocks } of buckets) {
    sink.number(bucket);
    sink.number(blocks.length);
  }
  for (const { blocks } of buckets) {
    const plain = plainBits(total, blocks.length);
    let last = -1;
    for (let i = 0; i < blocks.length; i += 1) {
      const block = blocks[i] as number;
      const gap = block - last - 1;
      let ones = gap >>> plain;
      for (; ones >= 16; ones -= 16) sink.bits(0xffff, 16);
      sink.bits((1 << ones) - 1, ones + 1);
      sink.bits(gap & ((1 << plain) - 1), plain);
      last = block;
    }
  }
  return sink.end();
}

/**
 * Decodes one group of buckets, in order. With `wanted`, returns only that bucket.
 *
 * @throws {IndexDamage}
 */
export function decodeGroup(group: Buffer, total: number, wanted?: number): readonly BucketBlocks[] {
  if (group.length === 0) return [];
  if (group.length < 5 || group.readUInt32LE(0) !== checksum(group.subarray(4)))
    throw new IndexDamage('a group of buckets');
  // Bits are read four bytes at a time, so the end needs padding.
  const body = new Uint8Array(group.length + 4);
  body.set(group.subarray(4));
  let at = 0;
  const number = (): number => {
    let [value, shift] = [0, 0];
    for (;;) {
      const byte = body[at++] ?? 0;
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
      shift += 7;
    }
  };
  const heads = Array.from({ length: number() }, () => ({ bucket: number(), found: number() }));
  let bit = at * 8;
  /** Returns the next 24 bits. The bits above them may be set, too. */
  const next = (): number => {
    const from = bit >>> 3;
    const bytes = body as Record<number, number>;
    return (
      ((bytes[from] as number) |
        ((bytes[from + 1] as number) << 8) |
        ((bytes[from + 2] as number) << 16) |
        ((bytes[from + 3] as number) << 24)) >>>
      (bit & 7)
    );
  };
  const decoded: BucketBlocks[] = [];
  for (const { bucket, found } of heads) {
    const plain = plainBits(total, found);
    const isWanted = wanted === undefined || wanted === bucket;
    const blocks = new Uint32Array(isWanted ? found : 0);
    let last = -1;
    for (let i = 0; i < found; i += 1) {
      let high = 0;
      for (;;) {
        // Adds a zero behind the 24 bits, so that a lowest zero always exists.
        const zeros = ~next() | (1 << AT_ONCE);
        const ones = 31 - Math.clz32(zeros & -zeros);
        high += ones;
        bit += ones;
        if (ones < AT_ONCE) break;
      }
      bit += 1;
      last += (high << plain) + (next() & ((1 << plain) - 1)) + 1;
      bit += plain;
      if (isWanted) blocks[i] = last;
    }
    if (isWanted) decoded.push({ bucket, blocks });
    if (bucket === wanted) break;
  }
  return decoded;
}
