import { MASK } from './mark.js';

/** The place of a value in a text. */
export interface ValueRange {
  readonly from: number;
  readonly end: number;
  /** The text that stands there instead. */
  readonly shown: string;
}

/**
 * The quote of a name or value. Texts within texts have backslashes before their quotes: 1, 3, 7 of
 * them.
 */
interface Quote {
  readonly depth: number;
  readonly quote: string;
  /** A closing quote is not looked for any farther. */
  readonly limit?: number;
}

/** What is known of a name before its value is looked for. */
export interface NamePlace {
  readonly from: number;
  readonly text: string;
  /** The sign between name and value is a colon. */
  readonly isColon: boolean;
}

const OPENING = /(\\*)(["'])/y;
const BARE = /[^\s,;"'()[\]{}\\]+/y;
const LITERAL = /(?:true|false|null|undefined|none|nil)(?![\w.-])/iy;
const SPACES = /[^\S\r\n]*/y;
/** White space between a sign and its value, also over line ends. */
const GAP = /\s{0,8}/y;
/** A value over several lines is not looked for any farther than this. */
const MOST_OVER_LINES = 4_096;
/** A bracket in the middle of a value, such as that of a call, has to close within this. */
const MOST_WITHIN = 1_024;

const OPEN = '([{';
const CLOSE = ')]}';

const matchAt = (pattern: RegExp, text: string, at: number): RegExpExecArray | null => {
  pattern.lastIndex = at;
  return pattern.exec(text);
};

/** The number of backslashes directly before a place. */
function backslashes(text: string, from: number, before: number): number {
  let at = before;
  while (at > from && text[at - 1] === '\\') at--;
  return before - at;
}

/**
 * The end of a value between quotes, before its closing quote and the backslashes of that;
 * undefined where nothing closes it before the opening's limit.
 */
function closedAt(text: string, from: number, { depth, quote, limit = text.length }: Quote): number | undefined {
  for (let at = text.indexOf(quote, from); at !== -1 && at < limit; at = text.indexOf(quote, at + 1)) {
    const run = backslashes(text, from, at);
    // Fewer are the end of the text that this one stands in; a backslash of the value itself stands
    // for one more of each.
    if (run < depth || Math.floor((run - depth) / (depth + 1)) % 2 === 0) return at - Math.min(run, depth);
  }
  return undefined;
}

/**
 * The end of a value that begins behind a quote. One that its line does not close goes on to a
 * quote that closes something, else to the end of the line.
 */
function quotedEnd(text: string, from: number, opening: Quote): number {
  const end = closedAt(text, from, opening);
  const line = text.slice(from, end).indexOf('\n');
  if (line === -1) return end ?? text.length;
  const lineEnd = from + line;
  // Masked already, and not closed.
  if (line === MASK.length && text.startsWith(MASK, from)) return lineEnd;
  if (end === undefined || end - from > MOST_OVER_LINES) return lineEnd;
  const behind = text[end + opening.depth + 1];
  return behind === undefined || /[\s,;:.)\]}>]/.test(behind) ? end : lineEnd;
}

/**
 * The place behind the bracket that closes the one at `from`. A quote of a smaller depth ends the
 * text that the value stands in, so the value ends there.
 * Undefined where nothing closes it before `limit`.
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
      // A quote that its line does not close is an apostrophe.
      const end = closedAt(text, at + 1, { depth: run, quote: char, limit: Math.min(lineEnd, limit) });
      if (end !== undefined) at = end + run;
    }
  }
  return undefined;
}

/**
 * The end of a value without quotes: words, brackets and quoted parts that stand directly behind
 * each other.
 */
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
      // One that closes the text around is not a part of the value.
      if (end === undefined || !/\w/.test(text[inside] ?? '')) return at;
      at = end + quote.depth + 1;
      continue;
    }
    if (char === '\\' && /[^nrt"'\\]/.test(text[at + 1] ?? '"')) at += 1;
    else return at;
  }
}

/** The line ends of YAML, also as JSON writes them within a text. */
const LINE_END = /\r?\n|(?:\\+r)?\\+n/;
/**
 * The beginning of a block of YAML: anchors and tags, a sign of a text in lines, a comment, the end
 * of the line.
 */
const BLOCK = new RegExp(
  `[^\\S\\r\\n]*((?:[&!][^\\s]{0,64}(?=\\s)[^\\S\\r\\n]*)*)((?:[|>][+-]?\\d?[+-]?[^\\S\\r\\n]*)?)(?:#[^\\r\\n]*)?(${LINE_END.source})`,
  'y',
);
/** A name that begins its line, perhaps behind the hyphen of a list. */
const KEY_LINE = /(?:^|\n|\\n|["'])((?:[^\S\r\n]|-(?=[^\S\r\n]))*)$/;

/** The column of a name of YAML; undefined for a name in the middle of a line. */
function keyColumn(text: string, from: number): number | undefined {
  return KEY_LINE.exec(text.slice(Math.max(0, from - 256), from))?.[1]?.length;
}

/**
 * The end of a block of YAML: its lines are blank, farther in than its name, or items of a list at
 * the column of the name.
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
 * The rest of the line of a value of YAML without quotes, less a comment and a comma; words may
 * stand in it.
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
  // Without a sign a quoted text or a bracket may begin in the next line, which its own end ends.
  if (tags === '' && sign === '' && /["'[{]/.test(indented)) return undefined;
  return { from: at, end, shown: ` ${MASK}` };
}

/**
 * A value between brackets, hidden as a whole; one that nothing closes reaches to the end of the
 * text.
 */
function bracketRange(text: string, from: number, quote: Quote | undefined): ValueRange {
  const end = bracketEnd(text, from, { depth: quote?.depth ?? 0, limit: text.length }) ?? text.length;
  const mark = quote === undefined ? '' : `${'\\'.repeat(quote.depth)}${quote.quote}`;
  return { from, end, shown: `${mark}${MASK}${mark}` };
}

/**
 * The place of the value behind a name and its sign; undefined for a value that holds nothing, and
 * for true, false and null.
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
