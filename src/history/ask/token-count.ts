import { setImmediate } from 'node:timers/promises';
import { countTokens as countExactly } from 'gpt-tokenizer/encoding/o200k_base';
import { LRUCache } from 'lru-cache';
import { hashText } from '../../objects/hashes.js';
import { counted } from '../../values/counted.js';
import { LineCounts } from './line-counts.js';
import type { CountTexts } from './tokenizer.js';

/**
 * Longest run of characters between two spaces, or of spaces, that is counted in one piece. Merging takes time in the square of such a run: one of
 * 100,000 equal characters costs seconds. Cutting runs changes a count by less than a token for each cut.
 */
const LONGEST_RUN = 256;
/** Shorter texts are counted faster than they are looked up. */
const CACHED_FROM = 16;
/** Longer texts are remembered by their hash. */
const KEPT_AS_TEXT = 256;
/** Names of special tokens that stand in a text are text. */
const AS_TEXT = { disallowedSpecial: new Set<string>() } as const;

/** How many counts are kept of either kind. */
const MOST_KEPT = 50_000;
/** By the hashes of texts. */
const longCounts = new LRUCache<string, number>(counted(MOST_KEPT));
/** By texts. Lines are looked up a hundred thousand times in a question: what keeps account of which was used last takes three times as long. */
const shortCounts = new Map<string, number>();

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

/** Where a text is cut so that no run is longer than the limit; never inside a surrogate pair. */
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

function count(text: string): number {
  let tokens = 0;
  let from = 0;
  for (const to of [...cuts(text), text.length]) {
    if (to > from) tokens += countExactly(text.slice(from, to), AS_TEXT);
    from = to;
  }
  return tokens;
}

const SPACE = /\s/;

/** Whether no token of the vocabulary goes on from the end of a line over this character: neither white space nor a slash. */
function beginsAnew(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code < 0x80 ? code > 0x20 && code !== 0x2f : !SPACE.test(text[at] as string);
}

/** The tokens of a text as those of its lines: a line stands in many texts, and is counted once. */
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
  // A piece of a longer text would keep that one in memory: its bytes are copied.
  shortCounts.set(Buffer.from(text).toString(), tokens);
  return tokens;
}

/**
 * The tokens of a text. Takes time in proportion to its length whatever it holds, about 0.2 s for a megabyte of code, and remembers counts of texts and of their lines: a
 * text that shares most of its lines with one that was counted takes a hundredth of that. Names of special tokens are text. Loading this module loads a vocabulary
 * (5 MB, some 15 ms; 0.2 s where the program was not built): import it where it is needed, not at start-up.
 */
export function countTokens(text: string): number {
  const counted = text.isWellFormed() ? text : text.toWellFormed();
  if (counted.length <= KEPT_AS_TEXT) return remembered(counted);
  return lineCounts.countAlike(counted) ?? rememberedLong(counted, (long) => lineCounts.count(long));
}

/** Counts in this thread, and keeps it busy with that: other work of the process runs before. */
export const countHere: CountTexts = async (texts) => {
  await setImmediate();
  return texts.map(countTokens);
};
