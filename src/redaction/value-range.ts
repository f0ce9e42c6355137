import { MASK } from './mark.js';

/** The range of a value in a text. */
export interface ValueRange {
  readonly from: number;
  readonly end: number;
  /** The text that replaces the value. */
  readonly shown: string;
}

/**
 * The quote of a name or value. `depth` backslashes precede it: 1, 3 or 7 if texts are nested as
 * JSON, else 0.
 */
interface Quote {
  readonly depth: number;
  readonly quote: string;
  /** The closing quote must come before this position. */
  readonly limit?: number;
}

/** The name of a value and the sign after it. */
export interface NamePlace {
  readonly from: number;
  readonly text: string;
  /** True if the sign is a colon. */
  readonly isColon: boolean;
}

const OPENING = /(\\*)(["'])/y;
const BARE = /[^\s,;"'()[\]{}\\]+/y;
const LITERAL = /(?:true|false|null|undefined|none|nil)(?![\w.-])/iy;
const SPACES = /[^\S\r\n]*/y;
/** White space between the sign and the value, line ends included. */
const GAP = /\s{0,8}/y;
/** Maximum characters of a value that spans several lines. */
const MOST_OVER_LINES = 4_096;
/**
 * Maximum distance between an opening and a closing bracket inside an unquoted value, such as those
 * of a call.
 */
const MOST_WITHIN = 1_024;

const OPEN = '([{';
const CLOSE = ')]}';

const matchAt = (pattern: RegExp, text: string, at: number): RegExpExecArray | null => {
  pattern.lastIndex = at;
  return pattern.exec(text);
};

/**
 * Returns the number of backslashes directly before a position. Looks no further back than `from`.
 */
function backslashes(text: string, from: number, before: number): number {
  let at = before;
  while (at > from && text[at - 1] === '\\') at--;
  return before - at;
}

/**
 * Returns the end of a quoted value, before its closing quote and the backslashes of that quote.
 * Undefined if no quote closes it before the limit.
 */
function closedAt(text: string, from: number, { depth, quote, limit = text.length }: Quote): number | undefined {
  for (let at = text.indexOf(quote, from); at !== -1 && at < limit; at = text.indexOf(quote, at + 1)) {
    const run = backslashes(text, from, at);
    // A quote with fewer backslashes than `depth` ends the surrounding text. A quote with more is
    // inside the value.
    if (run < depth || Math.floor((run - depth) / (depth + 1)) % 2 === 0) return at - Math.min(run, depth);
  }
  return undefined;
}

/**
 * Returns the end of a quoted value that begins at `from`. The value may span lines if the text
 * after its closing quote can follow a value. Otherwise the value ends with its line.
 */
function quotedEnd(text: string, from: number, opening: Quote): number {
  const end = closedAt(text, from, opening);
  const line = text.slice(from, end).indexOf('\n');
  if (line === -1) return end ?? text.length;
  const lineEnd = from + line;
  // The value is unclosed and already masked.
  if (line === MASK.length && text.startsWith(MASK, from)) return lineEnd;
  if (end === undefined || end - from > MOST_OVER_LINES) return lineEnd;
  const behind = text[end + opening.depth + 1];
  return behind === undefined || /[\s,;:.)\]}>]/.test(behind) ? end : lineEnd;
}

/**
 * Returns the position after the bracket that closes the one at `from`. A quote with fewer
 * backslashes than the value's ends the surrounding text, and so the value. Undefined if no bracket
 * closes it before `limit`.
 */
function bracketEnd(
  text: string,
  from: number,
  { depth, limit }: { readonly depth: number; readonly limit: number },
): number | undefined {
  let open = 0;
  let lineEnd = from;
  for (let at = from; at < limit; at++) {
    const char = text[at] as string;
    if (OPEN.includes(char)) open += 1;
    else if (CLOSE.includes(char)) {
      open -= 1;
      if (open <= 0) return at + 1;
    } else if (char === '"' || char === "'") {
      const run = backslashes(text, from, at);
      if (char === '"' && run < depth) return at - run;
      if (lineEnd <= at) {
        const next = text.indexOf('\n', at);
        lineEnd = next === -1 ? text.length : next;
      }
      // A quote that is not closed on its line is an apostrophe.
      const end = closedAt(text, at + 1, { depth: run, quote: char, limit: Math.min(lineEnd, limit) });
      if (end !== undefined) at = end + run;
    }
  }
  return undefined;
}

/** Returns the end of an unquoted value: adjoining words, brackets and quoted parts. */
function bareEnd(text: string, from: number): number {
  let at = from;
  for (;;) {
    const bare = matchAt(BARE, text, at);
    if (bare !== null) {
      at += bare[0].length;
      continue;
    }
    const char = text[at] ?? '';
    if (at > from && char !== '' && OPEN.includes(char)) {
      at = bracketEnd(text, at, { depth: 0, limit: Math.min(text.length, at + MOST_WITHIN) }) ?? at + 1;
      continue;
    }
    const opening = at > from ? matchAt(OPENING, text, at) : null;
    if (opening !== null) {
      const inside = at + opening[0].length;
      const line = text.indexOf('\n', inside);
      const limit = Math.min(line === -1 ? text.length : line, inside + MOST_WITHIN);
      const quote = { depth: opening[1]?.length ?? 0, quote: opening[2] ?? '', limit };
      const end = closedAt(text, inside, quote);
      // The quote that closes the surrounding text does not belong to the value.
      if (end === undefined || !/\w/.test(text[inside] ?? '')) return at;
      at = end + quote.depth + 1;
      continue;
    }
    if (char === '\\' && /[^nrt"'\\]/.test(text[at + 1] ?? '"')) at += 1;
    else return at;
  }
}

/** Line ends of YAML, also in the form that JSON gives them inside a text. */
const LINE_END = /\r?\n|(?:\\+r)?\\+n/;
/** The beginning of a YAML block: anchors, tags, block scalar sign, comment, line end. */
const BLOCK = new RegExp(
  `[^\\S\\r\\n]*((?:[&!][^\\s]{0,64}(?=\\s)[^\\S\\r\\n]*)*)((?:[|>][+-]?\\d?[+-]?[^\\S\\r\\n]*)?)(?:#[^\\r\\n]*)?(${LINE_END.source})`,
  'y',
);
/** The beginning of a line before a name, with the hyphens of lists. */
const KEY_LINE = /(?:^|\n|\\n|["'])((?:[^\S\r\n]|-(?=[^\S\r\n]))*)$/;

/** Returns the column of a YAML name. Undefined if the name does not begin its line. */
function keyColumn(text: string, from: number): number | undefined {
  return KEY_LINE.exec(text.slice(Math.max(0, from - 256), from))?.[1]?.length;
}

/**
 * Returns the end of a YAML block. Its lines are blank, indented deeper than its name, or list
 * items at the column of the name.
 */
function blockEnd(
  text: string,
  from: number,
  { column, newline }: { readonly column: number; readonly newline: string },
): number | undefined {
  const slashes = newline.lastIndexOf('n') === -1 ? 0 : newline.length - newline.lastIndexOf('\\n') - 1;
  let end: number | undefined;
  for (let at = from; at < text.length; ) {
    const next = text.indexOf(newline, at);
    const stop = next === -1 ? text.length : next;
    const line = text.slice(at, stop);
    const indent = /^[^\S\r\n]*/.exec(line)?.[0].length ?? 0;
    const isBlank = indent === line.length || line.trim() === '';
    const isInside = indent > column || (indent === column && /^-(?:\s|$)/.test(line.slice(indent)));
    if (!isBlank && !isInside) break;
    if (slashes > 0) {
      const quote = closedAt(text, at, { depth: slashes, quote: '"', limit: stop });
      const outer = line.search(/(?<!\\)"/);
      if (outer !== -1 && quote !== undefined && quote <= at + outer) return at + outer;
    }
    if (!isBlank) end = stop;
    at = stop + newline.length;
  }
  return end;
}

/**
 * The rest of a line after an unquoted YAML value begins. The value may consist of several words,
 * without a final comment or comma.
 */
const REST = /[^\r\n"\\]*/y;

function blockRange(text: string, at: number, column: number): ValueRange | undefined {
  const begun = matchAt(BLOCK, text, at);
  if (begun === null) return undefined;
  const [whole, tags = '', sign = '', newline = '\n'] = begun;
  const first = at + whole.length;
  const end = blockEnd(text, first, { column, newline });
  if (end === undefined) return undefined;
  const indented = /^(?:[^\S\r\n]|\r?\n)*(.?)/.exec(text.slice(first, end))?.[1] ?? '';
  // Without tags and block sign, the next line may begin with a quote or bracket. Then the value is
  // no block: it ends where the quote or bracket closes.
  if (tags === '' && sign === '' && /["'[{]/.test(indented)) return undefined;
  return { from: at, end, shown: ` ${MASK}` };
}

/**
 * Returns the range of a bracketed value, which is hidden as a whole. A value that is not closed
 * extends to the end of the text.
 */
function bracketRange(text: string, from: number, quote: Quote | undefined): ValueRange {
  const end = bracketEnd(text, from, { depth: quote?.depth ?? 0, limit: text.length }) ?? text.length;
  const mark = quote === undefined ? '' : `${'\\'.repeat(quote.depth)}${quote.quote}`;
  return { from, end, shown: `${mark}${MASK}${mark}` };
}

/**
 * Returns the range of the value after a name and its sign. Undefined for an empty value, and for
 * `true`, `false` and `null`.
 */
export function valueRange(text: string, at: number, name?: NamePlace): ValueRange | undefined {
  const named = name === undefined ? null : /(\\*)(["'])\s*[:=,>]*\s*$/.exec(name.text);
  const nameQuote = named === null ? undefined : { depth: named[1]?.length ?? 0, quote: named[2] ?? '"' };
  const column =
    name === undefined || nameQuote !== undefined || !name.isColon ? undefined : keyColumn(text, name.from);
  if (column !== undefined) {
    const block = blockRange(text, at, column);
    if (block !== undefined) return block;
  }
  const spaces = matchAt(SPACES, text, at)?.[0].length ?? 0;
  const isSameLine = !/[\r\n]/.test(text[at + spaces] ?? '');
  const from = at + (isSameLine ? spaces : (matchAt(GAP, text, at)?.[0].length ?? 0));
  const opening = matchAt(OPENING, text, from);
  if (opening !== null) {
    const quote = { depth: opening[1]?.length ?? 0, quote: opening[2] ?? '"' };
    const triple = quote.quote.repeat(3);
    if (quote.depth === 0 && text.startsWith(triple, from)) {
      const inside = from + triple.length;
      const end = text.indexOf(triple, inside);
      return end === inside ? undefined : { from: inside, end: end === -1 ? text.length : end, shown: MASK };
    }
    const inside = from + opening[0].length;
    const end = quotedEnd(text, inside, quote);
    return end === inside ? undefined : { from: inside, end, shown: MASK };
  }
  if (matchAt(LITERAL, text, from) !== null) return undefined;
  if (text.startsWith(MASK, from))
    return { from, end: Math.max(from + MASK.length, bareEnd(text, from + MASK.length)), shown: MASK };
  const char = text[from] ?? '';
  if (char !== '' && OPEN.includes(char)) return bracketRange(text, from, nameQuote);
  if (column !== undefined && isSameLine) {
    const rest = matchAt(REST, text, from)?.[0] ?? '';
    const said = rest.replace(/\s#.*$/s, '').replace(/[\s,;]+$/, '');
    if (said !== '') return { from, end: from + said.length, shown: MASK };
  }
  const end = bareEnd(text, from);
  if (end === from) return undefined;
  const isNumber = nameQuote !== undefined && /^-?\d[\d.eE+-]*$/.test(text.slice(from, end));
  const mark = isNumber ? `${'\\'.repeat(nameQuote.depth)}${nameQuote.quote}` : '';
  return { from, end, shown: `${mark}${MASK}${mark}` };
}
