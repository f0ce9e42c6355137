import { type Colours, escapedLine } from './output.js';

/** A column of a table for people. */
export interface Column {
  readonly heading: string;
  /** Numbers stand at the right end of their column. */
  readonly align?: 'left' | 'right';
  /**
   * A column that shrinks if the table is wider than the terminal, with its share of the room that
   * is left. Other columns stay as wide as their widest cell.
   */
  readonly share?: number;
  /** Fewest characters of a column that shrinks. */
  readonly least?: number;
  /** The end of a path says more than its beginning. Ids may differ at either end. */
  readonly keep?: 'start' | 'end' | 'ends';
  readonly style?: keyof Pick<Colours, 'dim' | 'cyan' | 'yellow' | 'green'>;
}

const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
const NO_WIDTH = /^(?:\p{M}|\p{Cf})$/u;

const widthOf = (char: string): number => (NO_WIDTH.test(char) ? 0 : WIDE.test(char) ? 2 : 1);

/** Returns the terminal cells that a text takes, without styles. */
export function cellsOf(text: string): number {
  let cells = 0;
  for (const char of text) cells += widthOf(char);
  return cells;
}

/** Shortens a text to a number of terminal cells. The mark … takes the last one. */
export function shortened(text: string, most: number): string {
  if (cellsOf(text) <= most) return text;
  let cells = 0;
  let kept = '';
  for (const char of text) {
    cells += widthOf(char);
    if (cells > most - 1) break;
    kept += char;
  }
  return most < 1 ? '' : `${kept.trimEnd()}…`;
}

/** Shortens a text at its beginning. */
function shortenedAtStart(text: string, most: number): string {
  if (cellsOf(text) <= most) return text;
  const backwards = [...text].reverse().join('');
  return most < 1 ? '' : `…${[...shortened(backwards, most).slice(0, -1)].reverse().join('')}`;
}

const END_CHARS = 4;

/** Shortens a text in its middle. */
function shortenedInside(text: string, most: number): string {
  if (cellsOf(text) <= most) return text;
  if (most <= 2 * END_CHARS) return shortened(text, most);
  const end = [...text].slice(-END_CHARS).join('');
  return `${shortened(text, most - cellsOf(end))}${end}`;
}

const SHORTENED = { start: shortened, end: shortenedAtStart, ends: shortenedInside } as const;

const STYLES = new RegExp(`(${String.fromCharCode(0x1b)}\\[[\\d;]*m)`);

/** Shortens a line that has styles. A cut line ends with … and without a style. */
export function cutLine(line: string, most: number): string {
  const pieces = line.split(STYLES);
  const isStyle = (at: number): boolean => at % 2 === 1;
  const total = pieces.reduce((sum, piece, at) => sum + (isStyle(at) ? 0 : cellsOf(piece)), 0);
  if (total <= most) return line;
  let room = most;
  let kept = '';
  for (const [at, piece] of pieces.entries()) {
    if (isStyle(at)) kept += piece;
    else if (cellsOf(piece) < room) {
      kept += piece;
      room -= cellsOf(piece);
    } else return `${kept}${shortened(`${piece}…`, room)}${pieces.length > 1 ? `${String.fromCharCode(0x1b)}[0m` : ''}`;
  }
  return kept;
}

/** Breaks a sentence at spaces into lines of a terminal, each with the same beginning. */
export function wrapped(text: string, width: number | undefined, start = ''): readonly string[] {
  if (width === undefined) return [`${start}${text}`];
  const lines: string[] = [];
  let line = start;
  for (const word of text.split(' ')) {
    if (line !== start && cellsOf(line) + 1 + cellsOf(word) > width) {
      lines.push(line);
      line = start;
    }
    line += line === start ? word : ` ${word}`;
  }
  return [...lines, line].map((one) => shortened(one, width));
}

const GAP = '  ';
const LEAST = 8;

/** Returns the width of each column so that a line fits, as far as columns can shrink. */
function widthsFor(columns: readonly Column[], widest: readonly number[], width: number): readonly number[] {
  const gaps = GAP.length * (columns.length - 1);
  const widths = [...widest];
  const total = (): number => widths.reduce((sum, one) => sum + one, gaps);
  const shares = columns.map(({ share = 0 }, i) => ((widest[i] ?? 0) === 0 ? 0 : share));
  if (total() <= width || shares.every((share) => share === 0)) return widths;
  const fixed = widths.reduce((sum, one, i) => sum + (shares[i] === 0 ? one : 0), gaps);
  // A column that needs less than its share leaves the rest to the others.
  const open = new Set(shares.flatMap((share, i) => (share > 0 ? [i] : [])));
  let room = width - fixed;
  for (let changed = true; changed; ) {
    changed = false;
    const all = [...open].reduce((sum, i) => sum + (shares[i] ?? 0), 0);
    for (const i of open) {
      const own = Math.floor((room * (shares[i] ?? 0)) / all);
      if ((widest[i] ?? 0) > own) continue;
      open.delete(i);
      room -= widest[i] ?? 0;
      changed = true;
      break;
    }
  }
  const all = [...open].reduce((sum, i) => sum + (shares[i] ?? 0), 0);
  for (const i of open) widths[i] = Math.max(columns[i]?.least ?? LEAST, Math.floor((room * (shares[i] ?? 0)) / all));
  return widths;
}

/**
 * Formats rows below their headings. If the width of the terminal is known, each line fits it: long
 * cells end with …, and no line wraps. Without a width every cell is whole.
 */
export function fittedTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { colours, width }: { readonly colours: Colours; readonly width: number | undefined },
): readonly string[] {
  const shown = rows.map((row) => row.map(escapedLine));
  const headings = columns.map(({ heading }) => heading);
  const used = columns.map((_column, i) => shown.some((row) => (row[i] ?? '') !== ''));
  const widest = columns.map((_column, i) =>
    used[i] ? Math.max(...[headings, ...shown].map((row) => cellsOf(row[i] ?? ''))) : 0,
  );
  const kept = columns.flatMap((_column, i) => (used[i] ? [i] : []));
  const keptColumns = kept.map((i) => columns[i] as Column);
  const keptWidest = kept.map((i) => widest[i] ?? 0);
  const widths = width === undefined ? keptWidest : widthsFor(keptColumns, keptWidest, width);
  const lineOf = (row: readonly string[], isHeading: boolean): string => {
    const cells = kept.map((i, at) => {
      const { align = 'left', keep = 'start', style } = columns[i] as Column;
      const cell = SHORTENED[keep](row[i] ?? '', widths[at] ?? 0);
      const pad = ' '.repeat(Math.max(0, (widths[at] ?? 0) - cellsOf(cell)));
      const styled = isHeading || style === undefined ? cell : colours[style](cell);
      return align === 'right' ? `${pad}${styled}` : at === kept.length - 1 ? styled : `${styled}${pad}`;
    });
    const line = cells.join(GAP);
    return isHeading ? colours.bold(line.trimEnd()) : line.trimEnd();
  };
  return [lineOf(headings, true), ...shown.map((row) => lineOf(row, false))];
}
