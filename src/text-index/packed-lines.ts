import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { LRUCache } from 'lru-cache';
import { IndexDamage } from './index-damage.js';
import { checksum } from './postings.js';

/** Number of lines that are compressed together. Lines of nearby entries are much alike. */
const LINES = 32;
/** Number of packs that an open segment caches. */
const CACHED_PACKS = 64;

/** Returns the number of packs that hold some lines. */
export const packsOf = (lines: number): number => Math.ceil(lines / LINES);

function packed(lines: readonly string[]): Buffer {
  const bytes = deflateRawSync(lines.join('\n'));
  const sum = Buffer.alloc(4);
  sum.writeUInt32LE(checksum(bytes));
  return Buffer.concat([sum, bytes]);
}

/** Yields packs of lines, in order. A line is JSON without line breaks. */
export function* packLines(lines: Iterable<string>): Generator<Buffer> {
  let waiting: string[] = [];
  for (const line of lines) {
    waiting.push(line);
    if (waiting.length < LINES) continue;
    yield packed(waiting);
    waiting = [];
  }
  if (waiting.length > 0) yield packed(waiting);
}

/** Returns the lines of a pack. @throws {IndexDamage} */
function unpacked(pack: Buffer): readonly string[] {
  const bytes = pack.subarray(4);
  if (pack.length < 5 || pack.readUInt32LE(0) !== checksum(bytes)) throw new IndexDamage('a pack of entries');
  return inflateRawSync(bytes).toString('utf8').split('\n');
}

/** Reads packed lines. */
export class PackedLines {
  readonly #read: (pack: number) => Buffer;
  readonly #cached = new LRUCache<number, readonly string[]>({ max: CACHED_PACKS });

  /** `read` returns the bytes of a pack. */
  constructor(read: (pack: number) => Buffer) {
    this.#read = read;
  }

  /** Returns one line. @throws {IndexDamage} */
  line(number: number): string {
    const pack = Math.floor(number / LINES);
    let lines = this.#cached.get(pack);
    if (lines === undefined) {
      lines = unpacked(this.#read(pack));
      this.#cached.set(pack, lines);
    }
    return lines[number % LINES] ?? '';
  }

  /** Yields the lines of consecutive packs. @throws {IndexDamage} */
  static *of(packs: Iterable<Buffer>): Generator<string> {
    for (const pack of packs) yield* unpacked(pack);
  }
}
