import { setImmediate } from 'node:timers/promises';
import { countTokens as countExactly } from 'gpt-tokenizer/encoding/o200k_base';
import { LRUCache } from 'lru-cache';
import type { CountTexts } from '../../history/rebuild/tokenizer.js';
import { hashText } from '../../objects/hashes.js';
import { counted } from '../../values/counted.js';
import { LineCounts } from './line-counts.js';

/**
 * Maximum length of a run of spaces or other characters that is counted in one piece. Merging takes
 * time in the square of the length: a run of 100,000 equal characters takes seconds. Each cut
 * changes the count by less than one token.
 */
const LONGEST_RUN = 256;
/** Minimum length of a cached text. Counting a shorter text is faster than a look-up. */
const CACHED_FROM = 16;
/** Maximum length of a text that is its own key in a cache. Longer texts are cached by hash. */
const KEPT_AS_TEXT = 256;
/** Options that count names of special tokens as text. */
const AS_TEXT = { disallowedSpecial: new Set<string>() } as const;

/** Maximum entries of each cache. */
const MOST_KEPT = 50_000;
/** Counts by hash of the text. */
const longCounts = new LRUCache<string, number>(counted(MOST_KEPT));
/**
 * Counts by text. No LRU: one question looks up a hundred thousand lines, and tracking their use
 * would take three times as long.
 */
const shortCounts = new Map<string, number>();
/** Counts of the short pieces between numbers. Longer pieces rarely occur again. */
const pieceCounts = new Map<string, number>();
const LONGEST_PIECE = 48;
/**
 * Minimum share of digits in a text that is counted between its numbers. With a smaller share, the
 * pieces are long and rarely occur again.
 */
const LEAST_DIGITS = 1 / 8;

function isSpace(code: number): boolean {
  return (
    code === 0x20 ||
    (code >= 0x09 && code <= 0x0d) ||
    code === 0xa0 ||
    code === 0x2028 ||
    code === 0x2029 ||
    code === 0x3000
  );
}

const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/**
 * Returns the offsets at which to cut a text so that no run exceeds the limit. Never splits a
 * surrogate pair.
 */
function cuts(text: string): readonly number[] {
  const found: number[] = [];
  let run = 0;
  let space = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    const here = isSpace(code);
    run = here === space ? run + 1 : 1;
    space = here;
    if (run > LONGEST_RUN && !isLowSurrogate(code)) {
      found.push(i);
      run = 1;
    }
  }
  return found;
}

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;

/**
 * Returns whether no token joins the run of digits from `from` to `to` with a neighbour. Digits of
 * other scripts would belong to the run. White space before the run would be split differently
 * without it.
 */
function isApart(text: string, from: number, to: number): boolean {
  const before = from === 0 ? 0x21 : text.charCodeAt(from - 1);
  return before > 0x20 && before < 0x7f && (to === text.length || text.charCodeAt(to) < 0x80);
}

function countPiece(text: string): number {
  if (text.length > LONGEST_PIECE) return countExactly(text, AS_TEXT);
  const known = pieceCounts.get(text);
  if (known !== undefined) return known;
  const tokens = countExactly(text, AS_TEXT);
  if (pieceCounts.size >= MOST_KEPT) pieceCounts.clear();
  pieceCounts.set(Buffer.from(text).toString(), tokens);
  return tokens;
}

/**
 * Counts a text piece by piece between its numbers. Numbers are split into tokens of three digits.
 * Caching pays, because ids and numbered names have few different pieces.
 */
function countBetweenNumbers(text: string): number {
  let tokens = 0;
  let from = 0;
  for (let i = 0; i < text.length; i++) {
    if (!isDigit(text.charCodeAt(i))) continue;
    const start = i;
    while (i + 1 < text.length && isDigit(text.charCodeAt(i + 1))) i++;
    if (!isApart(text, start, i + 1)) continue;
    if (start > from) tokens += countPiece(text.slice(from, start));
    tokens += Math.ceil((i + 1 - start) / 3);
    from = i + 1;
  }
  return from < text.length ? tokens + countPiece(text.slice(from)) : tokens;
}

/** Returns whether a text has so many digits that its pieces probably occur again. */
function isNumbered(text: string): boolean {
  let digits = 0;
  for (let i = 0; i < text.length; i++) if (isDigit(text.charCodeAt(i))) digits += 1;
  return digits > text.length * LEAST_DIGITS;
}

const countPlain = (text: string): number =>
  isNumbered(text) ? countBetweenNumbers(text) : countExactly(text, AS_TEXT);

function count(text: string): number {
  let tokens = 0;
  let from = 0;
  for (const to of [...cuts(text), text.length]) {
    if (to > from) tokens += countPlain(text.slice(from, to));
    from = to;
  }
  return tokens;
}

const SPACE = /\s/;

/**
 * Returns whether no token can contain a line end and the character after it. That holds unless the
 * character is white space or a slash.
 */
function beginsAnew(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code < 0x80 ? code > 0x20 && code !== 0x2f : !SPACE.test(text[at] as string);
}

/** Counts texts as the sum of their lines. A line that occurs in many texts is counted once. */
const lineCounts = new LineCounts({ isApart: beginsAnew, count: remembered });

function rememberedLong(text: string, counting: (text: string) => number): number {
  const hash = hashText(text);
  const known = longCounts.get(hash);
  if (known !== undefined) return known;
  const tokens = counting(text);
  longCounts.set(hash, tokens);
  return tokens;
}

function remembered(text: string): number {
  if (text.length < CACHED_FROM) return count(text);
  if (text.length > KEPT_AS_TEXT) return rememberedLong(text, count);
  const known = shortCounts.get(text);
  if (known !== undefined) return known;
  const tokens = count(text);
  if (shortCounts.size >= MOST_KEPT) shortCounts.clear();
  // Copies the bytes, because a slice would keep the whole text in memory.
  shortCounts.set(Buffer.from(text).toString(), tokens);
  return tokens;
}

/**
 * Returns the number of tokens of a text, in time proportional to its length: about 0.2 s for a
 * megabyte of code. Caches the counts of texts and lines, so a text that shares most lines with an
 * earlier one takes a hundredth of that time. Names of special tokens count as text. Loading this
 * module loads a vocabulary (5 MB, about 15 ms; 0.2 s from source), so import it only when needed.
 */
export function countTokens(text: string): number {
  const counted = text.isWellFormed() ? text : text.toWellFormed();
  if (counted.length <= KEPT_AS_TEXT) return remembered(counted);
  return lineCounts.countAlike(counted) ?? rememberedLong(counted, (long) => lineCounts.count(long));
}

/** Counts in this thread, which blocks it. Pending work of the process runs first. */
export const countHere: CountTexts = async (texts) => {
  await setImmediate();
  return texts.map(countTokens);
};
