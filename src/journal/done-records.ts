import { z } from 'zod';

/** Numbers from the first to the last, both included. */
export type SequenceRange = readonly [first: number, last: number];

const rangesSchema = z.array(z.tuple([z.int().positive(), z.int().positive()]));

/**
 * Which records the database has: all up to `prefix`, and some beyond it, since records of different sessions arrive out of order.
 */
export class DoneRecords {
  #prefix = 0;
  readonly #beyond = new Set<number>();

  /** Every record up to this number is done. */
  get prefix(): number {
    return this.#prefix;
  }

  has(sequence: number): boolean {
    return sequence <= this.#prefix || this.#beyond.has(sequence);
  }

  add(sequence: number): void {
    if (this.has(sequence)) return;
    this.#beyond.add(sequence);
    while (this.#beyond.delete(this.#prefix + 1)) this.#prefix += 1;
  }

  /** Everything up to a number is done. */
  addUpTo(sequence: number): void {
    if (sequence <= this.#prefix) return;
    this.#prefix = sequence;
    for (const number of this.#beyond) if (number <= sequence) this.#beyond.delete(number);
    while (this.#beyond.delete(this.#prefix + 1)) this.#prefix += 1;
  }

  /** What is done beyond the prefix, as bytes for a mark. */
  encodeBeyond(): Buffer {
    const ranges: [number, number][] = [];
    for (const sequence of [...this.#beyond].sort((a, b) => a - b)) {
      const range = ranges.at(-1);
      if (range !== undefined && range[1] === sequence - 1) range[1] = sequence;
      else ranges.push([sequence, sequence]);
    }
    return Buffer.from(JSON.stringify(ranges));
  }

  /** Takes in what `encodeBeyond` gave. */
  addEncoded(bytes: Uint8Array): void {
    const ranges = rangesSchema.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
    for (const [first, last] of ranges) for (let sequence = first; sequence <= last; sequence++) this.add(sequence);
  }
}
