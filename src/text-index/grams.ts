/** Number of hash bits for three characters, and for the character after them. */
const [THREE_BITS, FOURTH_BITS] = [16, 5];
const FOURTHS = 1 << FOURTH_BITS;
/** Number of buckets of texts. Each bucket stands for four consecutive characters. */
const GRAM_BUCKETS = 1 << (THREE_BITS + FOURTH_BITS);
/** Number of hash bits of a key. The buckets of keys follow those of texts. */
const KEY_BITS = 20;
/** The number of buckets in an index. */
export const BUCKETS = GRAM_BUCKETS + (1 << KEY_BITS);
/** Maximum UTF-16 units of a wanted text that the index looks up. */
export const LONGEST_LITERAL = 64;
/** Minimum UTF-16 units of a text that the index can look up. */
const SHORTEST_LITERAL = 3;

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

const threeOf = (a: number, b: number, c: number): number =>
  Math.imul(Math.imul(Math.imul(a, 0x01000193) ^ b, 0x01000193) ^ c, 0x9e3779b1) >>> (32 - THREE_BITS);
const fourthOf = (d: number): number => Math.imul(d, 0x9e3779b1) >>> (32 - FOURTH_BITS);

/**
 * Collects the buckets of a part of a text, each once. The last three units of the part form a
 * bucket with the unit after the part.
 */
export class GramCollector {
  readonly #seen = new Uint32Array(GRAM_BUCKETS);
  #run = 0;

  /** Calls `found` with each bucket of `text` from `from` to `end`. */
  collect(text: string, { from, end }: { readonly from: number; readonly end: number }, found: (b: number) => void) {
    const [fold, seen] = [foldTable(), this.#seen];
    this.#run += 1;
    const run = this.#run;
    let a = fold[text.charCodeAt(from)] ?? 0;
    let b = from + 1 < end ? (fold[text.charCodeAt(from + 1)] ?? 0) : 0;
    for (let at = from + 2; at < end; at += 1) {
      const c = fold[text.charCodeAt(at)] ?? 0;
      const d = at + 1 < text.length ? (fold[text.charCodeAt(at + 1)] ?? 0) : 0;
      const bucket = (threeOf(a, b, c) << FOURTH_BITS) | fourthOf(d);
      if (seen[bucket] !== run) {
        seen[bucket] = run;
        found(bucket);
      }
      a = b;
      b = c;
    }
  }
}

const isSurrogate = (unit: number): boolean => (unit & 0xf800) === 0xd800;

/**
 * Returns sets of buckets for a literal. Each text that contains the literal has a bucket of every
 * set. Empty if the literal is too short. Leaves out letters of two units, because their case is
 * not folded.
 */
export function literalBuckets(literal: string): readonly (readonly number[])[] {
  const units = Array.from({ length: Math.min(literal.length, LONGEST_LITERAL) }, (_, i) => literal.charCodeAt(i));
  const folded = units.map(foldedUnit);
  const sets: (readonly number[])[] = [];
  for (let at = 0; at + SHORTEST_LITERAL <= units.length; at += 1) {
    if (units.slice(at, at + SHORTEST_LITERAL).some(isSurrogate)) continue;
    const [a = 0, b = 0, c = 0, d] = folded.slice(at, at + 4);
    const three = threeOf(a, b, c) << FOURTH_BITS;
    if (d !== undefined && !isSurrogate(units[at + 3] ?? 0)) sets.push([three | fourthOf(d)]);
    else if (at + SHORTEST_LITERAL === units.length && sets.length > 0) break;
    else sets.push(Array.from({ length: FOURTHS }, (_, i) => three | i));
  }
  return sets;
}

/** Returns the bucket of a key. */
export function keyBucket(key: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < key.length; i += 1) hash = Math.imul(hash ^ key.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 15;
  return GRAM_BUCKETS + (Math.imul(hash, 0x9e3779b1) >>> (32 - KEY_BITS));
}
