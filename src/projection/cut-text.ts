import type { TokenCounter } from './entry.js';

/** More characters than this for each token are hardly ever kept, so that no more are counted. */
const MOST_CHARS_A_TOKEN = 8;
/** What is kept of a text that is too long by a little must get shorter at every try. */
const SHRINK = 0.95;

const isLowSurrogate = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** The nearest place at or before one that does not stand between the halves of a surrogate pair. */
const before = (text: string, at: number): number => (at < text.length && isLowSurrogate(text.charCodeAt(at)) ? at - 1 : at);
const behind = (text: string, at: number): number => (at < text.length && isLowSurrogate(text.charCodeAt(at)) ? at + 1 : at);

function shortened(text: string, chars: number): string {
  const head = before(text, Math.ceil(chars / 2));
  const tail = behind(text, Math.max(head, text.length - Math.floor(chars / 2)));
  const mark = `[... ${tail - head} characters omitted ...]`;
  return [text.slice(0, head), mark, text.slice(tail)].filter((part) => part !== '').join('\n');
}

/**
 * A text within a limit of tokens: as it is, else its beginning and its end around the line `[... N characters omitted ...]`, or that line alone. Of any text, never
 * between the halves of a surrogate pair. Longer than the limit only where that line is.
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
