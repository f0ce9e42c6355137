import type { QueryAnswer } from '../history/ask/run-query.js';
import type { Json } from '../objects/canonical-json.js';
import { escapedLine } from './escape-text.js';
import type { Colours } from './output.js';

const WIDEST = 80;
/** Rows that the width of a column is taken from: one wide cell far below must not fill the whole table with spaces. */
const MEASURED_ROWS = 1_000;

const shown = (value: Json): string => escapedLine(typeof value === 'string' ? value : JSON.stringify(value));

/** Rows below their headings, in columns as wide as what stands in the first of them; the last one as long as it is. */
export function columns(headings: readonly string[], rows: readonly (readonly string[])[], colours: Colours): readonly string[] {
  const measured = rows.slice(0, MEASURED_ROWS);
  const widths = headings.map((heading, i) => {
    const widest = measured.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), heading.length);
    return Math.min(WIDEST, widest);
  });
  const line = (cells: readonly string[]): string =>
    cells.map((cell, i) => (i === cells.length - 1 ? cell : cell.padEnd(widths[i] ?? 0))).join('  ');
  return [colours.bold(line(headings)), ...rows.map(line)];
}

/** What a query found. */
export function rowLines({ columns: headings, rows, limit, isCut }: QueryAnswer, colours: Colours): readonly string[] {
  const table = columns(
    headings,
    rows.map((row) => row.map(shown)),
    colours,
  );
  const cut = isCut ? [colours.yellow(`# cut at ${limit} rows: there are more (--limit, or :limit in the query)`)] : [];
  return [...table, colours.dim(`# ${rows.length} rows`), ...cut];
}
