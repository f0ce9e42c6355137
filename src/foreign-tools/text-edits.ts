/** One replacement of text by text. */
export interface Replacement {
  readonly from: string;
  readonly to: string;
  /** Whether every place is meant; otherwise the text must stand exactly once. */
  readonly all: boolean;
}

/** The lines of a text, each with its line end; a last one without is a line too, an empty text has none. */
function linesWithEnds(text: string): readonly string[] {
  return text === '' ? [] : text.split(/(?<=\n)/);
}

/** The lines of a text without their ends, as a program numbers them: what follows the last newline is a line only if there is anything. */
export function bareLines(text: string): readonly string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

const PIECE = 64 * 1024;

/** A text in which all lines end alike. Works in pieces: one pass over a text of line ends alone would hold a match for each. */
function withEnds(text: string, lineEnd: '\n' | '\r\n'): string {
  const pieces: string[] = [];
  for (let from = 0; from < text.length; ) {
    const end = from + PIECE;
    const to = text[end - 1] === '\r' ? end + 1 : end;
    pieces.push(text.slice(from, to).replace(/\r?\n/g, lineEnd));
    from = to;
  }
  return pieces.join('');
}

/** A text with Windows line ends. */
export const toCrlf = (text: string): string => withEnds(text, '\r\n');

/** A text with `\n` for every `\r\n`. */
export const toLf = (text: string): string => withEnds(text, '\n');

/** How the places of a text are looked for. */
interface OccurrenceOptions {
  /** Whether places that overlap count each. */
  readonly overlapping: boolean;
}

/** Up to this length the built-in search is linear for all purposes: it compares at most so many characters at each position. */
const SHORT = 32;

/** For each beginning of a text the length of its longest end, shorter than itself, that the text begins with as well. */
function borders(wanted: string): Uint32Array {
  const found = new Uint32Array(wanted.length);
  let length = 0;
  for (let at = 1; at < wanted.length; at++) {
    while (length > 0 && wanted.charCodeAt(at) !== wanted.charCodeAt(length)) length = found[length - 1] ?? 0;
    if (wanted.charCodeAt(at) === wanted.charCodeAt(length)) length += 1;
    found[at] = length;
  }
  return found;
}

/** The algorithm of Knuth, Morris and Pratt: time linear in both texts, places that overlap included. */
function* longOccurrences(text: string, wanted: string, overlapping: boolean): Generator<number, void, undefined> {
  if (wanted.length > text.length) return;
  const shorter = borders(wanted);
  let same = 0;
  for (let at = 0; at < text.length; at++) {
    while (same > 0 && text.charCodeAt(at) !== wanted.charCodeAt(same)) same = shorter[same - 1] ?? 0;
    if (text.charCodeAt(at) === wanted.charCodeAt(same)) same += 1;
    if (same < wanted.length) continue;
    yield at + 1 - same;
    same = overlapping ? (shorter[same - 1] ?? 0) : 0;
  }
}

function* shortOccurrences(text: string, wanted: string, overlapping: boolean): Generator<number, void, undefined> {
  const step = overlapping ? 1 : wanted.length;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + step)) yield at;
}

/**
 * The rising positions at which a text, not empty, stands in another one. Takes time linear in both, whatever they hold, and four bytes for each
 * code unit of the wanted one.
 */
export function occurrences(text: string, wanted: string, { overlapping }: OccurrenceOptions): Generator<number, void, undefined> {
  return wanted.length <= SHORT ? shortOccurrences(text, wanted, overlapping) : longOccurrences(text, wanted, overlapping);
}

/** Where a text that is to be replaced stands. */
export interface FoundText {
  /** The text as it stands: `wanted`, or the same with the Windows line ends of the whole. */
  readonly text: string;
  /** Rising positions of its first beginnings, five at most. */
  readonly places: readonly number[];
  /** How often it stands there in all. */
  readonly count: number;
}

const KEPT_PLACES = 5;

function locate(text: string, wanted: string, overlapping: boolean): FoundText {
  const places: number[] = [];
  let count = 0;
  for (const at of occurrences(text, wanted, { overlapping })) {
    if (count < KEPT_PLACES) places.push(at);
    count += 1;
  }
  return { text: wanted, places, count };
}

/**
 * Finds a text, not empty, in another one. Agents see `\n` where a file has `\r\n`: what stands nowhere as it was given is looked for with the file's ends.
 * Places that overlap count each where that is asked for. Takes time linear in both texts.
 */
export function findText(text: string, wanted: string, { overlapping = false } = {}): FoundText {
  const found = locate(text, wanted, overlapping);
  if (found.count > 0 || wanted.length > text.length || !text.includes('\r\n') || !wanted.includes('\n')) return found;
  return locate(text, toCrlf(wanted), overlapping);
}

/** The longest text that replacements may make, in UTF-16 code units; no recorded file is longer. */
const LONGEST_RESULT = 128 * 1024 * 1024;

const MOST_PARTS = 10_000;

function replaceEach(text: string, found: string, put: string): string {
  const joined: string[] = [];
  let parts: string[] = [];
  let position = 0;
  for (const at of occurrences(text, found, { overlapping: false })) {
    parts.push(text.slice(position, at), put);
    position = at + found.length;
    if (parts.length < MOST_PARTS) continue;
    joined.push(parts.join(''));
    parts = [];
  }
  return [...joined, ...parts, text.slice(position)].join('');
}

function replaceOne(text: string, { from, to, all }: Replacement): string | undefined {
  if (from === '') return text === '' ? to : undefined;
  const { text: found, places, count } = findText(text, from);
  const [first] = places;
  if (first === undefined || (count > 1 && !all)) return undefined;
  const put = found === from ? to : toCrlf(to);
  if (text.length + count * (put.length - found.length) > LONGEST_RESULT) return undefined;
  return all ? replaceEach(text, found, put) : text.slice(0, first) + put + text.slice(first + found.length);
}

/**
 * Applies replacements one after another as an edit tool does: each text must be there, and exactly once unless all are meant. Undefined where one does not
 * apply, or its result were over 128 Mi UTF-16 code units: then the tool did something else than what is known here, and the result is not known either.
 */
export function replaced(text: string, replacements: readonly Replacement[]): string | undefined {
  return replacements.reduce<string | undefined>((result, one) => (result === undefined ? undefined : replaceOne(result, one)), text);
}

/** Puts lines after the line of a number, 0 for the beginning; undefined where there is no such line. */
export function inserted(text: string, afterLine: number, lines: string): string | undefined {
  const all = linesWithEnds(text);
  if (!Number.isInteger(afterLine) || afterLine < 0 || afterLine > all.length) return undefined;
  const before = all.slice(0, afterLine).join('');
  const after = all.slice(afterLine).join('');
  const lead = before === '' || before.endsWith('\n') ? '' : '\n';
  const trail = after === '' || lines.endsWith('\n') ? '' : '\n';
  return before + lead + lines + trail + after;
}

/** Lines by their numbers, the first and the last included, and what takes their place. */
export interface LineReplacement {
  readonly first: number;
  readonly last: number;
  readonly text: string;
}

/** Puts lines in the place of others; undefined where those are not there. */
export function rangeReplaced(text: string, { first, last, text: lines }: LineReplacement): string | undefined {
  const all = linesWithEnds(text);
  const sound = Number.isInteger(first) && Number.isInteger(last) && first >= 1 && last >= first - 1 && last <= all.length;
  if (!sound) return undefined;
  const fresh = bareLines(lines).map((line) => `${line}\n`);
  const kept = all.slice(last);
  const end = kept.length === 0 && !text.endsWith('\n') && text !== '' ? fresh.join('').replace(/\n$/, '') : fresh.join('');
  return all.slice(0, first - 1).join('') + end + kept.join('');
}
