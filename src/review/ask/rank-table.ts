/**
 * The vocabulary of the token library, indexed by rank. A token is a text, or bytes that are not
 * valid UTF-8.
 */
export type RankList = readonly (string | readonly number[])[];

/** A vocabulary in one buffer. Texts are looked up in place. */
export interface RankTable {
  /** Returns the rank of a text; undefined if it is not a token. */
  get(text: string): number | undefined;
  /** Tokens that are not text, by rank. */
  readonly bytes: ReadonlyMap<number, readonly number[]>;
}

/**
 * Number of values in the header: the counts of slots, tokens and units, the length of the longest
 * token, and the count of byte tokens.
 */
const HEADER = 5;

/** Returns the first slot to check for a text. */
function slotOf(text: string, mask: number): number {
  let hash = text.length;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) & mask;
}

/**
 * Returns the number of slots. At most two thirds are used, so one or two checks show that a text
 * is not a token.
 */
const slotsFor = (tokens: number): number => 2 ** Math.ceil(Math.log2(tokens * 1.5));

/**
 * Packs a vocabulary for `openRanks`. After the header come the slots (rank plus one; zero if
 * empty), the offsets of the tokens, and the ranks of byte tokens. Last come the units: UTF-16
 * units of texts, or bytes. Numbers have four bytes and units two, little-endian.
 */
export function packRanks(ranks: RankList): Uint8Array {
  const slots = new Uint32Array(slotsFor(ranks.length));
  const starts = new Uint32Array(ranks.length + 1);
  for (const [rank, token] of ranks.entries()) starts[rank + 1] = (starts[rank] as number) + token.length;
  const units = new Uint16Array(starts.at(-1) ?? 0);
  const bytes: number[] = [];
  for (const [rank, token] of ranks.entries()) {
    const isText = typeof token === 'string';
    for (let i = 0; i < token.length; i++)
      units[(starts[rank] as number) + i] = isText ? token.charCodeAt(i) : (token[i] as number);
    if (!isText) {
      bytes.push(rank);
      continue;
    }
    let slot = slotOf(token, slots.length - 1);
    while (slots[slot] !== 0) slot = (slot + 1) & (slots.length - 1);
    slots[slot] = rank + 1;
  }
  const longest = ranks.reduce((most, { length }) => Math.max(most, length), 0);
  const header = Uint32Array.of(slots.length, ranks.length, units.length, longest, bytes.length);
  return Buffer.concat(
    [header, slots, starts, Uint32Array.from(bytes), units].map(({ buffer }) => new Uint8Array(buffer)),
  );
}

/**
 * Opens a table from `packRanks`. Throws RangeError if the length of the bytes is wrong, and on a
 * big-endian machine.
 */
export function openRanks({ buffer, byteOffset, byteLength }: Uint8Array): RankTable {
  let at = byteOffset;
  const numbers = (count: number): Uint32Array => {
    const read = new Uint32Array(buffer, at, count);
    at += read.byteLength;
    return read;
  };
  const [slotCount = 0, tokens = 0, unitCount = 0, longest = 0, byteCount = 0] = numbers(HEADER);
  const size = 4 * (HEADER + slotCount + tokens + 1 + byteCount) + 2 * unitCount;
  if (byteLength !== size) throw new RangeError(`a vocabulary of ${byteLength} bytes says that it has ${size}`);
  const [slots, starts, ranksOfBytes] = [numbers(slotCount), numbers(tokens + 1), numbers(byteCount)];
  const units = new Uint16Array(buffer, at, unitCount);
  const mask = slotCount - 1;

  const isAt = (from: number, text: string): boolean => {
    for (let i = 0; i < text.length; i++) if (units[from + i] !== text.charCodeAt(i)) return false;
    return true;
  };
  const bytes = new Map<number, readonly number[]>();
  for (const rank of ranksOfBytes) bytes.set(rank, Array.from(units.subarray(starts[rank], starts[rank + 1])));
  return {
    bytes,
    get(text) {
      if (text.length > longest) return undefined;
      for (let slot = slotOf(text, mask); slots[slot] !== 0; slot = (slot + 1) & mask) {
        const rank = (slots[slot] as number) - 1;
        const from = starts[rank] as number;
        if (starts[rank + 1] === from + text.length && isAt(from, text)) return rank;
      }
      return undefined;
    },
  };
}
