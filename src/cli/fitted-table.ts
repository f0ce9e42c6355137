import cliTruncate from 'cli-truncate';
import stringWidth from 'string-width';
import wrapAnsi from 'wrap-ansi';
import { type Colours, escapedLine } from './output.js';

/** A column of a table for people. */
export interface Column {
  readonly heading: string;
  /** The alignment of the cells. Numbers are aligned right. */
  readonly align?: 'left' | 'right';
  /**
   * Set for a column that shrinks if the table is wider than the terminal. It is the column's share
   * of the space that shrinking columns have. Other columns are as wide as their widest cell.
   */
  readonly share?: number;
  /** Minimum number of characters of a column that shrinks. */
  readonly least?: number;
  /** The part of a long cell that is kept. Default: the start. */
  readonly keep?: 'start' | 'end' | 'ends';
  /**
   * The column's rank. If a table is too wide for the terminal, columns of the lowest rank are left
   * out first.
   */
  readonly rank?: number;
  readonly style?: keyof Pick<Colours, 'dim' | 'cyan' | 'yellow' | 'green'>;
}

/** Returns the number of terminal cells that a text takes. Styles take none. */
export const cellsOf = (text: string): number => stringWidth(text);

const POSITIONS = { start: 'end', end: 'start', ends: 'middle' } as const;

/**
 * Shortens a text, which may have styles, to a number of terminal cells. One cell is for the mark
 * `…`.
 */
export function shortened(text: string, most: number, keep: keyof typeof POSITIONS = 'start'): string {
  const cut = cliTruncate(text, most, { position: POSITIONS[keep] });
  // cli-truncate keeps a wide character that begins in the last cell, and so may exceed the width.
  return cellsOf(cut) <= most ? cut : shortened(text, most - 1, keep);
}

/**
 * Breaks a sentence at spaces into lines that fit the terminal. Each line has the same beginning.
 */
export function wrapped(text: string, width: number | undefined, start = ''): readonly string[] {
  if (width === undefined) return [`${start}${text}`];
  const lines = wrapAnsi(text, Math.max(1, width - cellsOf(start)), { hard: true }).split('\n');
  return lines.map((line) => `${start}${line}`);
}

/**
 * Breaks a text at spaces into lines that fit the terminal. The first line may begin differently.
 */
export function hanging(
  first: string,
  text: string,
  { width, indent }: { readonly width: number | undefined; readonly indent: number },
): readonly string[] {
  if (width === undefined) return [`${first}${text}`];
  const [line = '', ...rest] = wrapped(text, width, ' '.repeat(indent));
  return [`${first}${line.slice(indent)}`, ...rest];
}

const GAP = '  ';
const LEAST = 8;

/** A column, and the width of its widest cell. */
interface Measured extends Column {
  readonly at: number;
  readonly widest: number;
}

const leastOf = ({ share, least = LEAST, widest }: Measured): number =>
  share === undefined ? widest : Math.min(least, widest);

const widthOf = (widths: readonly number[]): number =>
  widths.reduce((sum, one) => sum + one, GAP.length * Math.max(0, widths.length - 1));

/** Removes columns by rank until the rest fits. Columns without a rank are kept. */
function columnsThatFit(columns: readonly Measured[], width: number): readonly Measured[] {
  if (widthOf(columns.map(leastOf)) <= width) return columns;
  const [first] = columns
    .filter(({ rank }) => rank !== undefined)
    .sort((a, b) => (a.rank as number) - (b.rank as number));
  return first === undefined
    ? columns
    : columnsThatFit(
        columns.filter((one) => one !== first),
        width,
      );
}

/** Returns the width of each column. If a line does not fit, columns that may shrink do so. */
function widthsFor(columns: readonly Measured[], width: number): readonly number[] {
  const widths = columns.map(({ widest }) => widest);
  if (widthOf(widths) <= width) return widths;
  const open = new Set(columns.filter(({ share }) => share !== undefined));
  let room = width - widthOf(columns.map((one) => (open.has(one) ? 0 : one.widest)));
  const ownOf = ({ share = 0 }: Measured): number =>
    Math.floor((room * share) / [...open].reduce((sum, one) => sum + (one.share ?? 0), 0));
  const settled = new Map<Measured, number>();
  // A column that needs less than its share leaves the rest to the other columns. They also pay for
  // a column whose minimum is more than its share.
  for (;;) {
    const satisfied = [...open].find((one) => one.widest <= ownOf(one));
    const next = satisfied ?? [...open].find((one) => leastOf(one) > ownOf(one));
    if (next === undefined) break;
    const taken = satisfied === undefined ? leastOf(next) : next.widest;
    open.delete(next);
    settled.set(next, taken);
    room -= taken;
  }
  return columns.map((one) => settled.get(one) ?? (open.has(one) ? ownOf(one) : one.widest));
}

/**
 * Formats rows below their headings. Columns without any text are left out. If the terminal's width
 * is known, lines fit it: first columns of low rank are removed, then long cells are cut. Otherwise
 * nothing is cut.
 */
export function fittedTable(
  columns: readonly Column[],
  rows: readonly (readonly string[])[],
  { colours, width }: { readonly colours: Colours; readonly width: number | undefined },
): readonly string[] {
  const shown = rows.map((row) => row.map(escapedLine));
  const headings = columns.map(({ heading }) => heading);
  const used = columns.flatMap((column, at): readonly Measured[] => {
    if (shown.every((row) => (row[at] ?? '') === '')) return [];
    return [{ ...column, at, widest: Math.max(...[headings, ...shown].map((row) => cellsOf(row[at] ?? ''))) }];
  });
  const kept = width === undefined ? used : columnsThatFit(used, width);
  const widths = width === undefined ? kept.map(({ widest }) => widest) : widthsFor(kept, width);
  const lineOf = (row: readonly string[], isHeading: boolean): string => {
    const cells = kept.map(({ at, align = 'left', keep, style }, i) => {
      const cell = shortened(row[at] ?? '', widths[i] ?? 0, keep);
      const pad = ' '.repeat(Math.max(0, (widths[i] ?? 0) - cellsOf(cell)));
      const styled = isHeading || style === undefined ? cell : colours[style](cell);
      return align === 'right' ? `${pad}${styled}` : i === kept.length - 1 ? styled : `${styled}${pad}`;
    });
    const line = shortened(cells.join(GAP).trimEnd(), width ?? Infinity);
    return isHeading ? colours.bold(line) : line;
  };
  return [lineOf(headings, true), ...shown.map((row) => lineOf(row, false))];
}
