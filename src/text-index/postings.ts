import { crc32 } from 'node:zlib';
import { IndexDamage } from './index-damage.js';

/** Buckets that are read together. */
export const GROUP = 32;

/** Returns the checksum of some bytes. It finds damage by accident, not by intent. */
export const checksum = (bytes: Uint8Array): number => crc32(bytes);

/** Maximum bytes that one write appends: a number with seven bits per byte, or a run of bits. */
const MOST_WRITTEN = 8;

/** Bytes that grow: numbers of seven bits a byte, and bits, the lowest of each byte first. */
class ByteSink {
  #bytes = Buffer.allocUnsafe(8_192);
  #size = 0;
  #waiting = 0;
  #count = 0;

  get written(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  clear(): void {
    this.#size = 0;
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

  /** Writes the bits of the last byte, and returns the size. */
  endOfBits(): number {
    this.#reserve();
    if (this.#count > 0) this.#bytes[this.#size++] = this.#waiting;
    [this.#waiting, this.#count] = [0, 0];
    return this.#size;
  }

  #reserve(): void {
    if (this.#size + MOST_WRITTEN <= this.#bytes.length) return;
    const next = Buffer.allocUnsafe(this.#bytes.length * 2);
    next.set(this.written);
    this.#bytes = next;
  }
}

/** A bucket of a group: its place in the group, and its ascending block numbers. */
export interface BucketBlocks {
  readonly bucket: number;
  readonly blocks: Uint32Array;
}

/** Bits of a gap that are written as they are, for an even spread of most blocks (Rice coding). */
function plainBits(blocks: Uint32Array): number {
  let [magnitudes, last] = [0, -1];
  for (let i = 0; i < blocks.length; i += 1) {
    const block = blocks[i] as number;
    magnitudes += 31 - Math.clz32(block - last);
    last = block;
  }
  return Math.floor(magnitudes / blocks.length + EVEN);
}

/** Makes up for the rounding down of each magnitude. */
const EVEN = 0.5;
/** Ones before a gap that is written as 32 bits: it is far larger than most. */
const FAR = 12;
/** Bits that are written at once. */
const AT_ONCE = 24;
const [heads, lists] = [new ByteSink(), new ByteSink()];

/** Encodes one group of buckets: a checksum, the sizes of the lists of blocks, and their gaps. */
export function encodeGroup(buckets: readonly BucketBlocks[]): Buffer {
  heads.clear();
  lists.clear();
  heads.number(buckets.length);
  let size = 0;
  for (const { bucket, blocks } of buckets) {
    const plain = plainBits(blocks);
    let last = -1;
    for (let i = 0; i < blocks.length; i += 1) {
      const block = blocks[i] as number;
      const gap = block - last - 1;
      const ones = gap >>> plain;
      if (ones >= FAR) {
        lists.bits((1 << FAR) - 1, FAR);
        lists.bits(gap & 0xffff, 16);
        lists.bits(gap >>> 16, 16);
      } else if (ones + 1 + plain <= AT_ONCE) {
        lists.bits(((1 << ones) - 1) | ((gap & ((1 << plain) - 1)) << (ones + 1)), ones + 1 + plain);
      } else {
        lists.bits((1 << ones) - 1, ones + 1);
        lists.bits(gap & ((1 << plain) - 1), plain);
      }
      last = block;
    }
    const end = lists.endOfBits();
    heads.number(bucket);
    heads.number(plain);
    heads.number(blocks.length);
    heads.number(end - size);
    size = end;
  }
  const group = Buffer.concat([Buffer.alloc(4), heads.written, lists.written]);
  group.writeUInt32LE(checksum(group.subarray(4)));
  return group;
}

/**
 * Decodes one group of buckets, in order. With `wanted`, returns only that bucket.
 *
 * @throws {IndexDamage}
 */
export function decodeGroup(group: Buffer, wanted?: number): readonly BucketBlocks[] {
  if (group.length === 0) return [];
  if (group.length < 5 || group.readUInt32LE(0) !== checksum(group.subarray(4)))
    throw new IndexDamage('a group of buckets');
  let at = 4;
  const number = (): number => {
    let [value, shift] = [0, 0];
    for (;;) {
      const byte = group[at++] ?? 0;
      value |= (byte & 127) << shift;
      if (byte < 128) return value >>> 0;
      shift += 7;
    }
  };
  const all = Array.from({ length: number() }, () => ({
    bucket: number(),
    plain: number(),
    found: number(),
    bytes: number(),
  }));
  const decoded: BucketBlocks[] = [];
  for (const { bucket, plain, found, bytes } of all) {
    if (wanted === undefined || wanted === bucket)
      decoded.push({ bucket, blocks: decodeList(group.subarray(at, at + bytes), { found, plain }) });
    at += bytes;
  }
  return decoded;
}

function decodeList(bytes: Buffer, { found, plain }: { readonly found: number; readonly plain: number }): Uint32Array {
  // Bits are read four bytes at a time, also at the end.
  const body = new Uint8Array(bytes.length + 8);
  body.set(bytes);
  let bit = 0;
  /** Returns the next 24 bits, and more bits above them. */
  const next = (): number => {
    const from = bit >>> 3;
    return (
      ((body[from] as number) |
        ((body[from + 1] as number) << 8) |
        ((body[from + 2] as number) << 16) |
        ((body[from + 3] as number) << 24)) >>>
      (bit & 7)
    );
  };
  const blocks = new Uint32Array(found);
  let last = -1;
  for (let i = 0; i < found; i += 1) {
    const zeros = ~next() | (1 << FAR);
    const ones = 31 - Math.clz32(zeros & -zeros);
    let gap: number;
    if (ones === FAR) {
      bit += FAR;
      gap = next() & 0xffff;
      bit += 16;
      gap |= (next() & 0xffff) << 16;
      bit += 16;
    } else {
      bit += ones + 1;
      gap = (ones << plain) + (next() & ((1 << plain) - 1));
      bit += plain;
    }
    last += gap + 1;
    blocks[i] = last;
  }
  return blocks;
}
