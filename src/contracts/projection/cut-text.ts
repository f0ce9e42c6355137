import type { TokenCounter } from './entry.js';

/**
 * Tokens of a text are not counted if it has more characters than this per token of the limit. Such
 * a text hardly ever fits.
 */
const MOST_CHARS_A_TOKEN = 8;
/** Maximum share of the kept characters that remains after an attempt that is too long. */
const SHRINK = 0.95;

const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** Returns the nearest position at or before `at` that does not split a surrogate pair. */
const before = (text: string, at: number): number =>
  at < text.length && isLowSurrogate(text.charCodeAt(at)) ? at - 1 : at;
const behind = (text: string, at: number): number =>
  at < text.length && isLowSurrogate(text.charCodeAt(at)) ? at + 1 : at;

function shortened(text: string, chars: number): string {
  const head = before(text, Math.ceil(chars / 2));
  const tail = behind(text, Math.max(head, text.length - Math.floor(chars / 2)));
  const mark = `[... ${tail - head} characters omitted ...]`;
  return [text.slice(0, head), mark, text.slice(tail)].filter((part) => part !== '').join('\n');
}

/**
 * Cuts a text to a limit of tokens. Returns it unchanged if it fits. Otherwise returns its
 * beginning and end around the line `[... N characters omitted ...]`, or that line alone. Works on
 * any text and never splits a surrogate pair. Exceeds the limit only if that line alone exceeds it.
 */
export function cutText(text: string, limit: number, counter: TokenCounter): string {
  if (text.length <= limit * MOST_CHARS_A_TOKEN && counter.count(text) <= limit) return text;
  let chars = Math.min(text.length - 1, Math.max(0, limit) * MOST_CHARS_A_TOKEN);
  while (chars > 0) {
    const cut = shortened(text, chars);
    const tokens = counter.count(cut);
    if (tokens <= limit) return cut;
    chars = Math.floor(Math.min(chars * SHRINK, (chars * limit) / tokens));
  }
  const least = shortened(text, 0);
  return text.length <= least.length && counter.count(text) <= counter.count(least) ? text : least;
}
