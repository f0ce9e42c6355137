/** Consecutive UTF-16 units that are hashed together. */
interface Gram {
  readonly units: number;
  /** Bits of its hash. */
  readonly bits: number;
  readonly firstBucket: number;
}

/** Short grams find any text. Most long ones of a text are in few other texts. */
const SHORT: Gram = { units: 3, bits: 15, firstBucket: 0 };
const LONG: Gram = { units: 5, bits: 14, firstBucket: 1 << SHORT.bits };
/** Buckets of texts, which those of keys follow. */
const GRAM_BUCKETS = LONG.firstBucket + (1 << LONG.bits);
const KEY_BITS = 18;
/** The number of buckets in an index. */
export const BUCKETS = GRAM_BUCKETS + (1 << KEY_BITS);
/** Maximum UTF-16 units of a wanted text that the index looks up. */
export const LONGEST_LITERAL = 64;

let table: Uint16Array | undefined;

/** Returns a table that maps all units which a matcher may treat as the same letter to one unit. */
function foldTable(): Uint16Array {
  if (table !== undefined) return table;
  table = new Uint16Array(65_536);
  for (let unit = 0; unit < table.length; unit += 1) {
    const char = String.fromCharCode(unit);
    const upper = char.toUpperCase();
    const lower = (upper.length === 1 ? upper : char).toLowerCase();
    table[unit] = lower.length === 1 ? lower.charCodeAt(0) : unit;
  }
  return table;
}

/** Returns the folded form of one UTF-16 unit. */
export const foldedUnit = (unit: number): number => foldTable()[unit] ?? unit;

const FACTOR = 0x01000193;
const power = (exponent: number): number =>
  Array.from({ length: exponent }).reduce((product: number) => Math.imul(product, FACTOR), 1);
/** Factors of the unit that leaves a gram when the gram moves on by one unit. */
const [SHORT_FIRST, LONG_FIRST] = [power(SHORT.units), power(LONG.units)];

/** Returns the bucket of a gram from the polynomial of its units. */
function bucketOf(polynomial: number, { bits, firstBucket }: Gram): number {
  const mixed = Math.imul(polynomial ^ (polynomial >>> 15), 0x2c1b3c6d);
  return firstBucket + (Math.imul(mixed ^ (mixed >>> 12), 0x9e3779b1) >>> (32 - bits));
}

/** Collects the buckets of a part of a text, each once. */
export class GramCollector {
  readonly #seen = new Uint32Array(GRAM_BUCKETS);
  #units = new Uint16Array(1 << 15);
  #run = 0;

  /**
   * Writes the buckets of `text` from `from` to `end` into `found`, beginning at index `size`.
   * Returns the new size. `found` needs room for two buckets a unit.
   */
  collect(
    text: string,
    { from, end }: { readonly from: number; readonly end: number },
    { found, size: already }: { readonly found: Uint32Array; readonly size: number },
  ): number {
    const [fold, seen, length] = [foldTable(), this.#seen, end - from];
    if (this.#units.length < length) this.#units = new Uint16Array(length);
    const units = this.#units;
    this.#run += 1;
    const run = this.#run;
    let [size, short, long] = [already, 0, 0];
    for (let at = 0; at < length; at += 1) {
      const unit = fold[text.charCodeAt(from + at)] as number;
      units[at] = unit;
      short = (Math.imul(short, FACTOR) + unit) | 0;
      long = (Math.imul(long, FACTOR) + unit) | 0;
      if (at >= SHORT.units) short = (short - Math.imul(units[at - SHORT.units] as number, SHORT_FIRST)) | 0;
      if (at >= LONG.units) long = (long - Math.imul(units[at - LONG.units] as number, LONG_FIRST)) | 0;
      if (at >= SHORT.units - 1) {
        const bucket = bucketOf(short, SHORT);
        if (seen[bucket] !== run) {
          seen[bucket] = run;
          found[size++] = bucket;
        }
      }
      if (at >= LONG.units - 1) {
        const bucket = bucketOf(long, LONG);
        if (seen[bucket] !== run) {
          seen[bucket] = run;
          found[size++] = bucket;
        }
      }
    }
    return size;
  }
}

const isSurrogate = (unit: number): boolean => (unit & 0xf800) === 0xd800;

/** Returns the buckets of the grams of a literal. Grams that do not overlap come first. */
function gramBuckets(units: readonly number[], gram: Gram): readonly number[] {
  const found = new Set<number>();
  for (let first = 0; first < gram.units; first += 1) {
    for (let at = first; at + gram.units <= units.length; at += gram.units) {
      const part = units.slice(at, at + gram.units);
      // The case of letters of two units is not folded.
      if (part.some(isSurrogate)) continue;
      found.add(
        bucketOf(
          part.reduce((hash, unit) => (Math.imul(hash, FACTOR) + foldedUnit(unit)) | 0, 0),
          gram,
        ),
      );
    }
  }
  return [...found];
}

/**
 * Returns the buckets that each text with a literal is in, the most selective first. Empty if the
 * literal is too short.
 */
export function literalBuckets(literal: string): readonly number[] {
  const units = Array.from({ length: Math.min(literal.length, LONGEST_LITERAL) }, (_, i) => literal.charCodeAt(i));
  return [...gramBuckets(units, LONG), ...gramBuckets(units, SHORT)];
}

/** Returns the bucket of a key. */
export function keyBucket(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), FACTOR);
  hash ^= hash >>> 15;
  return GRAM_BUCKETS + (Math.imul(hash, 0x9e3779b1) >>> (32 - KEY_BITS));
}
