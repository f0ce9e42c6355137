import { posix } from 'node:path';
import { floorOf, HOUSE, partOf, roomOf, type SourceFile } from './source-tree.js';

/** Maximum lines of a source file that only its neighbour uses. */
const SLICE_LINES = 60;

/** The size of the core or of a wing. */
export interface Size {
  readonly name: string;
  readonly files: number;
  readonly lines: number;
  /** The share of lines that are only comment. */
  readonly comments: number;
}

/** Figures on the structure of the source. */
export interface Figures {
  /** The core, then each wing. */
  readonly sizes: readonly Size[];
  readonly files: number;
  readonly lines: number;
  readonly median: number;
  readonly p95: number;
  readonly largest: { readonly path: string; readonly lines: number };
  /**
   * Imports between rooms of one floor and between parts of one room, with the number of importing
   * files.
   */
  readonly sideways: ReadonlyMap<string, number>;
  /** Files of at most 60 lines whose only importer is in the same folder. */
  readonly slices: readonly string[];
}

/** Returns the number of lines of a file. */
export function linesOf({ text }: SourceFile): number {
  return text.split('\n').length - 1;
}

/** Returns the number of lines of a file that are only comment. */
function commentLinesOf({ text }: Pick<SourceFile, 'text'>): number {
  let isInside = false;
  let count = 0;
  for (const line of text.split('\n').map((one) => one.trim())) {
    const isComment = isInside || line.startsWith('/*') || line.startsWith('//');
    if (isComment) count += 1;
    if (isInside || line.startsWith('/*')) isInside = !line.includes('*/');
  }
  return count;
}

function sizeOf(name: string, files: readonly SourceFile[]): Size {
  const lines = files.reduce((sum, file) => sum + linesOf(file), 0);
  const comments = files.reduce((sum, file) => sum + commentLinesOf(file), 0);
  return { name, files: files.length, lines, comments: lines === 0 ? 0 : comments / lines };
}

/** Returns the sizes of the core and of each wing. */
function sizesOf(files: readonly SourceFile[]): readonly Size[] {
  const wingOf = ({ path }: SourceFile): string => (HOUSE.wings.includes(roomOf(path)) ? roomOf(path) : 'core');
  return ['core', ...HOUSE.wings].map((name) =>
    sizeOf(
      name,
      files.filter((file) => wingOf(file) === name),
    ),
  );
}

/** Returns the value below which a share of the files lies. */
export function quantile(sizes: readonly number[], share: number): number {
  const sorted = [...sizes].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

/**
 * Returns the arrow of a sideways import: between rooms of one floor, or between parts of one
 * divided room. Returns undefined for any other import.
 */
export function sidewaysArrow(from: string, to: string): string | undefined {
  const [room, other] = [roomOf(from), roomOf(to)];
  if (room !== other) return floorOf(room) === floorOf(other) ? `${room}>${other}` : undefined;
  const [part, beside] = [partOf(from), partOf(to)];
  return part !== beside && HOUSE.inside[room] !== undefined ? `${room}: ${part}>${beside}` : undefined;
}

function slices(files: readonly SourceFile[]): readonly string[] {
  const importers = new Map<string, Set<string>>();
  for (const { path, imports } of files)
    for (const to of imports) importers.set(to, (importers.get(to) ?? new Set()).add(path));
  return files
    .filter((file) => {
      const [only, another] = importers.get(file.path) ?? [];
      return (
        linesOf(file) <= SLICE_LINES &&
        only !== undefined &&
        another === undefined &&
        posix.dirname(only) === posix.dirname(file.path)
      );
    })
    .map(({ path }) => path);
}

/** Measures source files. */
export function figuresOf(files: readonly SourceFile[]): Figures {
  const sizes = files.map(linesOf);
  const sideways = new Map<string, number>();
  for (const { path, imports } of files) {
    for (const arrow of new Set(imports.flatMap((to) => sidewaysArrow(path, to) ?? [])))
      sideways.set(arrow, (sideways.get(arrow) ?? 0) + 1);
  }
  const largest = files.reduce((one, other) => (linesOf(other) > linesOf(one) ? other : one));
  return {
    sizes: sizesOf(files),
    files: files.length,
    lines: sizes.reduce((sum, lines) => sum + lines, 0),
    median: quantile(sizes, 0.5),
    p95: quantile(sizes, 0.95),
    largest: { path: largest.path, lines: linesOf(largest) },
    sideways,
    slices: slices(files),
  };
}

/** Returns the figures as lines of text. */
export function figureLines(figures: Figures): readonly string[] {
  const { sizes, files, lines, median, p95, largest, sideways, slices } = figures;
  const arrows = [...sideways].sort().map(([arrow, count]) => `${arrow} (${count})`);
  return [
    ...sizes.map(
      (size) => `${size.name}: ${size.files} files, ${size.lines} lines, ${Math.round(size.comments * 100)} % comment`,
    ),
    `source: ${files} files, ${lines} lines; median ${median}, p95 ${p95}, largest ${largest.lines} (${largest.path})`,
    `sideways imports: ${arrows.length} arrows, ` +
      `${[...sideways.values()].reduce((sum, count) => sum + count, 0)} files: ${arrows.join(', ')}`,
    `files of at most ${SLICE_LINES} lines with one importer beside them: ` +
      `${slices.length}${slices.map((path) => `\n  ${path}`).join('')}`,
  ];
}
