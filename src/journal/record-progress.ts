import * as z from 'zod';
import { JournalError } from './errors.js';
import { LONGEST_PAYLOAD } from './frame.js';

/** A record that waits for the database, and its location. */
export interface WaitingRecord {
  readonly sequence: number;
  /** Time of acknowledgement, milliseconds since 1970. */
  readonly at: number;
  readonly segment: number;
  readonly offset: number;
  /** Size of the whole frame. */
  readonly bytes: number;
}

const rangesSchema = z.array(z.tuple([z.int().positive(), z.int().positive()]));

/**
 * The records that the database has: all up to `prefix`, and some beyond it. Records of different
 * sessions are delivered out of order.
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

  /** Marks all records up to a number as done. */
  addUpTo(sequence: number): void {
    if (sequence <= this.#prefix) return;
    this.#prefix = sequence;
    for (const number of this.#beyond) if (number <= sequence) this.#beyond.delete(number);
    while (this.#beyond.delete(this.#prefix + 1)) this.#prefix += 1;
  }

  /** Encodes the done records beyond the prefix for a mark. */
  encodeBeyond(): Buffer {
    const ranges: [number, number][] = [];
    for (const sequence of [...this.#beyond].sort((a, b) => a - b)) {
      const range = ranges.at(-1);
      if (range !== undefined && range[1] === sequence - 1) range[1] = sequence;
      else ranges.push([sequence, sequence]);
    }
    return Buffer.from(JSON.stringify(ranges));
  }

  /** Adds the result of `encodeBeyond`. */
  addEncoded(bytes: Uint8Array): void {
    const ranges = rangesSchema.parse(JSON.parse(Buffer.from(bytes).toString('utf8')));
    for (const [first, last] of ranges) for (let sequence = first; sequence <= last; sequence++) this.add(sequence);
  }
}

/** Limits of the waiting records. */
export interface PendingLimits {
  /** Maximum bytes of waiting records; default 256 MiB. */
  readonly maxPendingBytes?: number;
  /** Maximum number of waiting records; default 10,000. */
  readonly maxPending?: number;
}

const NEAR = 0.8;

/** The records of a journal that wait for the database, within a limit. */
export class PendingRecords {
  readonly #maxBytes: number;
  readonly #maxCount: number;
  /** Sorted by number. */
  readonly #records = new Map<number, WaitingRecord>();
  readonly #bySegment = new Map<number, number>();
  #bytes = 0;
  #reservedBytes = 0;
  #reserved = 0;

  constructor({ maxPendingBytes = 268_435_456, maxPending = 10_000 }: PendingLimits) {
    this.#maxBytes = Math.min(maxPendingBytes, LONGEST_PAYLOAD);
    this.#maxCount = maxPending;
  }

  get count(): number {
    return this.#records.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get oldest(): WaitingRecord | undefined {
    const [oldest] = this.#records.values();
    return oldest;
  }

  /** Whether four fifths of the limit are used. */
  get nearFull(): boolean {
    return (
      this.count + this.#reserved >= this.#maxCount * NEAR || this.#bytes + this.#reservedBytes >= this.#maxBytes * NEAR
    );
  }

  /**
   * Reserves room for a record before it is written.
   * @throws {JournalError} `full` if there is no room
   */
  reserve(bytes: number): void {
    const count = this.count + this.#reserved;
    const total = this.#bytes + this.#reservedBytes;
    if (count + 1 > this.#maxCount || total + bytes > this.#maxBytes) {
      throw new JournalError(
        'full',
        `${count} records (${total} bytes) wait for the database. ` +
          `${bytes} more bytes would exceed the limit of ${this.#maxCount} records or ${this.#maxBytes} bytes. ` +
          'Nothing was written: wait until the database is back, then repeat the call.',
      );
    }
    this.#reserved += 1;
    this.#reservedBytes += bytes;
  }

  /** Releases the room of a record, before it is added or if it never will be. */
  unreserve(bytes: number): void {
    this.#reserved -= 1;
    this.#reservedBytes -= bytes;
  }

  add(record: WaitingRecord): void {
    this.#records.set(record.sequence, record);
    this.#bytes += record.bytes;
    this.#bySegment.set(record.segment, (this.#bySegment.get(record.segment) ?? 0) + 1);
  }

  /** Removes a record. Returns whether it was waiting. */
  remove(sequence: number): boolean {
    const record = this.#records.get(sequence);
    if (record === undefined) return false;
    this.#records.delete(sequence);
    this.#bytes -= record.bytes;
    this.#bySegment.set(record.segment, (this.#bySegment.get(record.segment) ?? 0) - 1);
    return true;
  }

  has(sequence: number): boolean {
    return this.#records.has(sequence);
  }

  /** Returns whether a file contains waiting records. */
  inSegment(segment: number): boolean {
    return (this.#bySegment.get(segment) ?? 0) > 0;
  }

  /** Removes a deleted file from the bookkeeping. */
  forgetSegment(segment: number): void {
    this.#bySegment.delete(segment);
  }

  all(): readonly WaitingRecord[] {
    return [...this.#records.values()];
  }
}
