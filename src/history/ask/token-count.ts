import { countTokens as countExactly } from 'gpt-tokenizer/encoding/o200k_base';
import { LRUCache } from 'lru-cache';
import { hashText } from '../../objects/hashes.js';
import { counted } from '../../values/counted.js';

/** What tokens are counted with; recorded beside every count, since another vocabulary counts differently. */
export const TOKENIZER = 'gpt-tokenizer/o200k_base';

/**
 * Longest run of characters between two spaces, or of spaces, that is counted in one piece. Merging takes time in the square of such a run: one of
 * 100,000 equal characters costs seconds. Cutting runs changes a count by less than a token for each cut.
 */
const LONGEST_RUN = 256;
/** Shorter texts are counted faster than they are looked up. */
const CACHED_FROM = 64;
/** Names of special tokens that stand in a text are text. */
const AS_TEXT = { disallowedSpecial: new Set<string>() } as const;

const counts = new LRUCache<string, number>(counted(50_000));

function isSpace(code: number): boolean {
  return code === 0x20 || (code >= 0x09 && code <= 0x0d) || code === 0xa0 || code === 0x2028 || code === 0x2029 || code === 0x3000;
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

/**
 * The tokens of a text. Takes time in proportion to its length whatever it holds, about 0.2 s for a megabyte of code, and remembers counts by the
 * text's hash. Loading this module loads a vocabulary (some 0.2 s): import it where it is needed, not at start-up.
 */
export function countTokens(text: string): number {
  const sound = text.isWellFormed() ? text : text.toWellFormed();
  if (sound.length < CACHED_FROM) return count(sound);
  const key = hashText(sound);
  const tokens = counts.get(key) ?? count(sound);
  counts.set(key, tokens);
  return tokens;
}
