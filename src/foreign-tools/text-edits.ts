/** The replacement of one text by another. */
export interface Replacement {
  readonly from: string;
  readonly to: string;
  /** Whether all occurrences are replaced. Otherwise the text must occur exactly once. */
  readonly all: boolean;
}

/**
 * Returns the lines of a text with their line endings. The last line need not have one. An empty
 * text has no lines.
 */
function linesWithEnds(text: string): readonly string[] {
  return text === '' ? [] : text.split(/(?<=\n)/);
}

/**
 * Returns the lines of a text without their line endings, as programs number them. After a final
 * newline there is no further line.
 */
export function bareLines(text: string): readonly string[] {
  const lines = text.split('\n');
  if (lines.at(-1) === '') lines.pop();
  return lines;
}

const PIECE = 64 * 1024;

/**
 * Returns a text with uniform line endings. It works in pieces: in one pass, a text of nothing but
 * line endings would need a match object for each.
 */
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

/** Returns a text with Windows line endings. */
export const toCrlf = (text: string): string => withEnds(text, '\r\n');

/** Returns a text with `\n` for every `\r\n`. */
export const toLf = (text: string): string => withEnds(text, '\n');

/** Options of a search for occurrences. */
interface OccurrenceOptions {
  /** Whether overlapping occurrences count separately. */
  readonly overlapping: boolean;
}

/**
 * Up to this length, the built-in search takes linear time in practice. It compares at most this
 * many characters per position.
 */
const SHORT = 32;

/**
 * Returns, for each prefix of a text, the length of its longest proper suffix that is also a
 * prefix.
 */
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

/** Finds occurrences by the Knuth-Morris-Pratt algorithm, whose time is linear in both texts. */
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
 * Yields the positions of a non-empty text in another text, in rising order. It takes linear time
 * for any content, and four bytes of memory per code unit of the wanted text.
 */
export function occurrences(
  text: string,
  wanted: string,
  { overlapping }: OccurrenceOptions,
): Generator<number, void, undefined> {
  return wanted.length <= SHORT
    ? shortOccurrences(text, wanted, overlapping)
    : longOccurrences(text, wanted, overlapping);
}

/** The occurrences of a text that will be replaced. */
export interface FoundText {
  /** The text as it was found: `wanted`, or `wanted` with Windows line endings. */
  readonly text: string;
  /** Positions of the first occurrences in rising order, at most five. */
  readonly places: readonly number[];
  /** Total number of occurrences. */
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
 * Finds a non-empty text in another text, in linear time. Agents see `\n` where a file has `\r\n`.
 * So a text without a match is searched again with the file's line endings. Overlapping occurrences
 * count separately if requested.
 */
export function findText(text: string, wanted: string, { overlapping = false } = {}): FoundText {
  const found = locate(text, wanted, overlapping);
  if (found.count > 0 || wanted.length > text.length || !text.includes('\r\n') || !wanted.includes('\n')) return found;
  return locate(text, toCrlf(wanted), overlapping);
}

/** Maximum length of a result in UTF-16 code units. No recorded file is longer. */
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
 * Applies replacements in order, as an edit tool does. Each text must occur exactly once, or at
 * least once if all occurrences are replaced. Undefined if a replacement does not apply or a result
 * exceeds 128 Mi UTF-16 code units. The result is then unknown, because the real tool did something
 * else.
 */
export function replaced(text: string, replacements: readonly Replacement[]): string | undefined {
  return replacements.reduce<string | undefined>(
    (result, one) => (result === undefined ? undefined : replaceOne(result, one)),
    text,
  );
}

/**
 * Inserts lines after a line given by its number; 0 is the beginning. Undefined if there is no such
 * line.
 */
export function inserted(text: string, afterLine: number, lines: string): string | undefined {
  const all = linesWithEnds(text);
  if (!Number.isInteger(afterLine) || afterLine < 0 || afterLine > all.length) return undefined;
  const before = all.slice(0, afterLine).join('');
  const after = all.slice(afterLine).join('');
  const lead = before === '' || before.endsWith('\n') ? '' : '\n';
  const trail = after === '' || lines.endsWith('\n') ? '' : '\n';
  return before + lead + lines + trail + after;
}

/** Replaces a text in each line: its first occurrence in the line, or all of them. */
export interface LineSubstitution {
  readonly from: string;
  readonly to: string;
  readonly all: boolean;
}

/** Applies a substitution to each line of a text. `from` is not empty and has no line ending. */
export const substituted = (text: string, { from, to, all }: LineSubstitution): string =>
  linesWithEnds(text)
    .map((line) => (all ? line.replaceAll(from, () => to) : line.replace(from, () => to)))
    .join('');

/** A range of lines, from `first` to `last` inclusive, and the text that replaces it. */
export interface LineReplacement {
  readonly first: number;
  readonly last: number;
  readonly text: string;
}

/** Replaces a range of lines. Undefined if the lines do not exist. */
export function rangeReplaced(text: string, { first, last, text: lines }: LineReplacement): string | undefined {
  const all = linesWithEnds(text);
  const sound =
    Number.isInteger(first) && Number.isInteger(last) && first >= 1 && last >= first - 1 && last <= all.length;
  if (!sound) return undefined;
  const fresh = bareLines(lines).map((line) => `${line}\n`);
  const kept = all.slice(last);
  const end =
    kept.length === 0 && !text.endsWith('\n') && text !== '' ? fresh.join('').replace(/\n$/, '') : fresh.join('');
  return all.slice(0, first - 1).join('') + end + kept.join('');
}
