import { IndexDamage } from './index-damage.js';

/** Buckets that are read together. */
export const GROUP = 256;

/** Returns the checksum of some bytes. It finds damage by accident, not by intent. */
export function checksum(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** Bytes that grow, with numbers of seven bits a byte. */
class ByteSink {
  #bytes: Buffer;
  #size = 0;

  constructor(capacity = 65_536) {
    this.#bytes = Buffer.allocUnsafe(capacity);
  }

  get size(): number {
    return this.#size;
  }

  number(value: number): void {
    this.#reserve(5);
    let rest = value;
    while (rest > 127) {
      this.#bytes[this.#size++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.#bytes[this.#size++] = rest;
  }

  bytes(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#size);
    this.#size += value.length;
  }

  /** The bytes so far. Valid until the next change. */
  view(): Buffer {
    return this.#bytes.subarray(0, this.#size);
  }

  clear(): void {
    this.#size = 0;
  }

  #reserve(more: number): void {
    if (this.#size + more <= this.#bytes.length) return;
    const next = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#size + more));
    next.set(this.view());
    this.#bytes = next;
  }
}

/** A bucket of a group: its place in the group, and its ascending block numbers. */
export interface BucketBlocks {
  readonly bucket: number;
  readonly blocks: Uint32Array;
}

/** Bits of a gap that are written as they are, for an even spread of blocks (Rice coding). */
const plainBits = (blocks: number, found: number): number =>
  Math.max(0, Math.floor(Math.log2((0.69 * blocks) / Math.max(1, found))));

/** Writes bits, the lowest of each byte first. */
class BitSink {
  readonly #bytes = new ByteSink(1_024);
  #waiting = 0;
  #count = 0;

  bits(value: number, count: number): void {
    for (let left = count, rest = value; left > 0; ) {
      const taken = Math.min(left, 8 - this.#count);
      this.#waiting |= (rest & ((1 << taken) - 1)) << this.#count;
      rest >>>= taken;
      left -= taken;
      this.#count += taken;
      if (this.#count === 8) this.#flush();
    }
  }

  ones(count: number): void {
    for (let left = count; left > 0; left -= 8) this.bits(255, Math.min(8, left));
  }

  view(): Buffer {
    if (this.#count > 0) this.#flush();
    return this.#bytes.view();
  }

  #flush(): void {
    this.#bytes.bytes(Uint8Array.of(this.#waiting));
    [this.#waiting, this.#count] = [0, 0];
  }
}

/**
 * Encodes one group of buckets: a checksum, the numbers of blocks, and the gaps between them.
 * `total` is the number of blocks of the segment.
 */
export function encodeGroup(buckets: readonly BucketBlocks[], total: number): Buffer {
  const sink = new ByteSink(1_024);
  sink.number(buckets.length);
  for (const { bucket, blocks } of buckets) {
    sink.number(bucket);
    sink.number(blocks.length);
  }
  const gaps = new BitSink();
  for (const { blocks } of buckets) {
    const plain = plainBits(total, blocks.length);
    let last = -1;
    for (const block of blocks) {
      const gap = block - last - 1;
      gaps.ones(gap >>> plain);
      gaps.bits(0, 1);
      gaps.bits(gap, plain);
      last = block;
    }
  }
  sink.bytes(gaps.view());
  const head = Buffer.alloc(4);
  head.writeUInt32LE(checksum(sink.view()));
  return Buffer.concat([head, sink.view()]);
}

/** Reads one group of buckets, in order. @throws {IndexDamage} */
export function* decodeGroup(group: Buffer, total: number): Generator<BucketBlocks> {
  if (group.length === 0) return;
  const body = group.subarray(4);
  if (group.length < 5 || group.readUInt32LE(0) !== checksum(body)) throw new IndexDamage('a group of buckets');
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
  const next = (): number => {
    const value = ((body[bit >>> 3] ?? 0) >>> (bit & 7)) & 1;
    bit += 1;
    return value;
  };
  const bits = (count: number): number => {
    let [value, got] = [0, 0];
    while (got < count) {
      const taken = Math.min(count - got, 8 - (bit & 7));
      value |= (((body[bit >>> 3] ?? 0) >>> (bit & 7)) & ((1 << taken) - 1)) << got;
      bit += taken;
      got += taken;
    }
    return value;
  };
  for (const { bucket, found } of heads) {
    const plain = plainBits(total, found);
    const blocks = new Uint32Array(found);
    let last = -1;
    for (let i = 0; i < found; i += 1) {
      let high = 0;
      while (next() === 1) high += 1;
      last += high * 2 ** plain + bits(plain) + 1;
      blocks[i] = last;
    }
    yield { bucket, blocks };
  }
}
