import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, relative } from 'node:path';

/** The project folder: the working directory of the tests and of `npm run check`. */
const root = process.cwd();

/** A source file with its imports from the project. */
export interface SourceFile {
  /** Relative to the project, with slashes. */
  readonly path: string;
  readonly text: string;
  /** Project files that it imports, relative to the project, with type-only and lazy imports. */
  readonly imports: readonly string[];
  /** External modules that it imports. */
  readonly packages: readonly string[];
}

const IMPORT = /(?:from|import)\s*\(?\s*'([^']+)'/g;

function read(path: string): SourceFile {
  const text = readFileSync(join(root, path), 'utf8');
  const specifiers = [...text.matchAll(IMPORT)].map(([, specifier]) => specifier ?? '');
  const local = specifiers.filter((specifier) => specifier.startsWith('.'));
  return {
    path,
    text,
    imports: local.map((specifier) =>
      posix.normalize(posix.join(posix.dirname(path), specifier)).replace(/\.js$/, '.ts'),
    ),
    packages: specifiers.filter((specifier) => !specifier.startsWith('.')),
  };
}

/** Returns every TypeScript file below a folder of the project. */
export function sourceFiles(folder: string): readonly SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
    .map((entry) => read(relative(root, join(entry.parentPath, entry.name)).split('\\').join('/')));
}

/**
 * The architecture as drawn: floors of rooms, lowest first, and the permitted imports on one floor
 * and inside one room.
 */
export interface House {
  /** Rooms beside the core, which imports none of them. All other rooms are the core. */
  readonly wings: readonly string[];
  /** Rooms by floor. A file imports its own room or rooms of lower floors. */
  readonly floors: readonly (readonly string[])[];
  /** Imports between rooms of one floor, `from>to`. */
  readonly arrows: readonly string[];
  /** Imports between the parts of a divided room, `from>to`. */
  readonly inside: Readonly<Record<string, readonly string[]>>;
}

/** The drawing that `docs/architecture.md` explains. */
export const HOUSE: House = JSON.parse(readFileSync(join(root, 'test/architecture/house.json'), 'utf8'));

/** Returns the room of a file below `src`: its folder, or its own name directly below `src`. */
export function roomOf(path: string): string {
  const [, room = '', rest] = path.split('/');
  return rest === undefined ? room.replace(/\.ts$/, '') : room;
}

/**
 * Returns the part of a divided room that has the file: the folder below the room, or an empty text
 * directly in the room.
 */
export function partOf(path: string): string {
  const [, , part = '', rest] = path.split('/');
  return rest === undefined ? '' : part;
}

/** Returns the floor of a room; -1 if the drawing lacks it. */
export function floorOf(room: string): number {
  return HOUSE.floors.findIndex((floor) => floor.includes(room));
}

/**
 * Returns every document of the project by relative path: Markdown at the top, below `docs` and
 * below `xtdb`.
 */
export function documents(): readonly string[] {
  const below = ['docs', 'xtdb'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(
      (name) => `${folder}/${name.split('\\').join('/')}`,
    ),
  );
  return [...readdirSync(root), ...below].filter((name) => name.endsWith('.md'));
}
