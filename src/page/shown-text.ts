/** A part of a line, from one column up to another one, which is not included. */
export interface MarkedPart {
  readonly from: number;
  readonly to: number;
}

/** A run of a line: plain text, or the code of a character that is invisible or reorders text. */
export interface TextRun {
  readonly text: string;
  readonly isEscape: boolean;
}

/** A row on the screen: a line, or a part of a long one. */
export interface TextRow {
  /** The line number, from 1. */
  readonly line: number;
  /** Start in the whole text, in UTF-16 units. */
  readonly from: number;
  readonly to: number;
  /** Whether it continues the line of the previous row. */
  readonly goesOn: boolean;
}

/** Maximum characters of a row; longer lines wrap. */
const ROW_CHARS = 160;

/**
 * Ranges of invisible characters, each with its first and last: control characters, direction
 * marks, zero-width characters and lone surrogates.
 */
const HIDDEN: readonly (readonly [number, number])[] = [
  [0x00, 0x08],
  [0x0b, 0x1f],
  [0x7f, 0x9f],
  [0xad, 0xad],
  [0x61c, 0x61c],
  [0x180e, 0x180e],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x206f],
  [0xd800, 0xdfff],
  [0xfeff, 0xfeff],
  [0xfff9, 0xfffb],
];

const isHidden = (code: number): boolean => HIDDEN.some(([first, last]) => code >= first && code <= last);

/** Whether a text may contain invisible characters; most texts are plain ASCII. */
function mayHide(text: string): boolean {
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 0x20 ? code !== 0x09 && code !== 0x0a : code > 0x7e) return true;
  }
  return false;
}

const isLow = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff;

/** Splits a text into rows, never inside a surrogate pair. */
export function textRows(text: string, width = ROW_CHARS): readonly TextRow[] {
  const rows: TextRow[] = [];
  let line = 1;
  for (let start = 0; start <= text.length; line += 1) {
    const found = text.indexOf('\n', start);
    const end = found < 0 ? text.length : found;
    // A final line end starts no further line.
    if (found < 0 && start === text.length && rows.length > 0) break;
    let from = start;
    do {
      let to = Math.min(end, from + width);
      if (to < end && isLow(text.charCodeAt(to))) to -= 1;
      rows.push({ line, from, to, goesOn: from !== start });
      from = to;
    } while (from < end);
    start = end + 1;
  }
  return rows;
}

const escaped = (character: string): string => {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
};

/** Splits a row into runs; invisible characters become codes. A line may end with CR and LF. */
export function textRuns(given: string): readonly TextRun[] {
  const text = given.replace(/\r(?=\n|$)/g, '');
  if (!mayHide(text)) return text === '' ? [] : [{ text, isEscape: false }];
  const runs: { text: string; isEscape: boolean }[] = [];
  for (const character of text) {
    const isEscape = isHidden(character.codePointAt(0) ?? 0);
    const shown = isEscape ? escaped(character) : character;
    const last = runs.at(-1);
    if (last?.isEscape === isEscape) last.text += shown;
    else runs.push({ text: shown, isEscape });
  }
  return runs;
}

/**
 * Formats a short text in one line with codes for invisible characters, so that no name can imitate
 * another.
 */
export function oneLine(text: string, most = 200): string {
  const short = text.length > most ? `${text.slice(0, most).toWellFormed()}…` : text;
  return textRuns(short.replaceAll('\n', '⏎'))
    .map((run) => run.text)
    .join('');
}
