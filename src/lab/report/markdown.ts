/** A table cell. A number is printed in groups of three digits. */
export type Cell = string | number;

/** Formats a number in groups of three digits. */
export const grouped = (value: number): string => String(value).replace(/\B(?=(\d{3})+$)/g, ' ');

const cellText = (cell: Cell): string =>
  typeof cell === 'number' ? grouped(cell) : cell.replaceAll('|', '\\|').replaceAll('\n', ' ');

const row = (cells: readonly Cell[]): string => `| ${cells.map(cellText).join(' | ')} |`;

/**
 * Returns the lines of a Markdown table. The first `texts` columns hold text, the others numbers.
 */
export function table(head: readonly string[], rows: readonly (readonly Cell[])[], texts = 1): readonly string[] {
  return [row(head), `|${head.map((_name, i) => (i < texts ? '---' : '---:')).join('|')}|`, ...rows.map(row)];
}
