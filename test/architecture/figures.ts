import { posix } from 'node:path';
import { floorOf, HOUSE, partOf, roomOf, type SourceFile } from './source-tree.js';

/** How large a source file may be that only its neighbour uses, before it is a room of its own. */
const SLICE_LINES = 60;

/** What the source looks like from outside. */
export interface Figures {
  readonly files: number;
  readonly lines: number;
  readonly median: number;
  readonly p95: number;
  readonly largest: { readonly path: string; readonly lines: number };
  /** Imports between rooms of one floor, and between parts of one room, by arrow, with how many files import so. */
  readonly sideways: ReadonlyMap<string, number>;
  /** Files of at most 60 lines that one file of the same folder imports and nobody else. */
  readonly slices: readonly string[];
}

/** How many lines a file has. */
export function linesOf({ text }: SourceFile): number {
  return text.split('\n').length - 1;
}

/** The value below which a share of the files lies. */
export function quantile(sizes: readonly number[], share: number): number {
  const sorted = [...sizes].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/** The arrow that an import follows sideways: between rooms of one floor, or between parts of one divided room; undefined for any other import. */
export function sidewaysArrow(from: string, to: string): string | undefined {
  const [room, other] = [roomOf(from), roomOf(to)];
  if (room !== other) return floorOf(room) === floorOf(other) ? `${room}>${other}` : undefined;
  const [part, beside] = [partOf(from), partOf(to)];
  return part !== beside && HOUSE.inside[room] !== undefined ? `${room}: ${part}>${beside}` : undefined;
}

function slices(files: readonly SourceFile[]): readonly string[] {
  const importers = new Map<string, Set<string>>();
  for (const { path, imports } of files) for (const to of imports) importers.set(to, (importers.get(to) ?? new Set()).add(path));
  return files
    .filter((file) => {
      const [only, another] = importers.get(file.path) ?? [];
      return (
        linesOf(file) <= SLICE_LINES && only !== undefined && another === undefined && posix.dirname(only) === posix.dirname(file.path)
      );
    })
    .map(({ path }) => path);
}

/** Measures some source files. */
export function figuresOf(files: readonly SourceFile[]): Figures {
  const sizes = files.map(linesOf);
  const sideways = new Map<string, number>();
  for (const { path, imports } of files) {
    for (const arrow of new Set(imports.flatMap((to) => sidewaysArrow(path, to) ?? [])))
      sideways.set(arrow, (sideways.get(arrow) ?? 0) + 1);
  }
  const largest = files.reduce((one, other) => (linesOf(other) > linesOf(one) ? other : one));
  return {
    files: files.length,
    lines: sizes.reduce((sum, lines) => sum + lines, 0),
    median: quantile(sizes, 0.5),
    p95: quantile(sizes, 0.95),
    largest: { path: largest.path, lines: linesOf(largest) },
    sideways,
    slices: slices(files),
  };
}

/** The figures as lines to read. */
export function figureLines({ files, lines, median, p95, largest, sideways, slices }: Figures): readonly string[] {
  const arrows = [...sideways].sort().map(([arrow, count]) => `${arrow} (${count})`);
  return [
    `source: ${files} files, ${lines} lines; median ${median}, p95 ${p95}, largest ${largest.lines} (${largest.path})`,
    `sideways imports: ${arrows.length} arrows, ${[...sideways.values()].reduce((sum, count) => sum + count, 0)} files: ${arrows.join(', ')}`,
    `files of at most ${SLICE_LINES} lines with one importer beside them: ${slices.length}${slices.map((path) => `\n  ${path}`).join('')}`,
  ];
}
