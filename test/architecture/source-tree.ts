import { readdirSync, readFileSync } from 'node:fs';
import { join, posix, relative } from 'node:path';

/** The folder of the project: where the tests and `npm run check` start. */
const root = process.cwd();

/** One source file with what it imports from the project. */
export interface SourceFile {
  /** Relative to the project, with slashes. */
  readonly path: string;
  readonly text: string;
  /** Project files that it imports, relative to the project; also type-only and lazy imports. */
  readonly imports: readonly string[];
  /** Modules from outside that it imports. */
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
    imports: local.map((specifier) => posix.normalize(posix.join(posix.dirname(path), specifier)).replace(/\.js$/, '.ts')),
    packages: specifiers.filter((specifier) => !specifier.startsWith('.')),
  };
}

/** Every TypeScript file below a folder of the project. */
export function sourceFiles(folder: string): readonly SourceFile[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name) && !entry.name.endsWith('.d.ts'))
    .map((entry) => read(relative(root, join(entry.parentPath, entry.name)).split('\\').join('/')));
}

/** The house as the architecture draws it: floors of rooms, lowest first, and the imports that are allowed on one floor and inside one room. */
export interface House {
  /** Rooms by floor: a file imports its own room or rooms of lower floors. */
  readonly floors: readonly (readonly string[])[];
  /** Imports between rooms of one floor, `from>to`. */
  readonly arrows: readonly string[];
  /** For a room that is divided: imports between its parts, `from>to`. */
  readonly inside: Readonly<Record<string, readonly string[]>>;
}

/** The drawing that `docs/architecture.md` explains. */
export const HOUSE: House = JSON.parse(readFileSync(join(root, 'test/architecture/house.json'), 'utf8'));

/** The room of a file below `src`: its folder, or its own name for a file directly below `src`. */
export function roomOf(path: string): string {
  const [, room = '', rest] = path.split('/');
  return rest === undefined ? room.replace(/\.ts$/, '') : room;
}

/** The part of a divided room that a file stands in: the folder below the room; empty for a file directly in the room. */
export function partOf(path: string): string {
  const [, , part = '', rest] = path.split('/');
  return rest === undefined ? '' : part;
}

/** The floor of a room; -1 for one that the drawing lacks. */
export function floorOf(room: string): number {
  return HOUSE.floors.findIndex((floor) => floor.includes(room));
}

/** Every document of the project, relative to it: Markdown at the top, below `docs` and below `xtdb`. */
export function documents(): readonly string[] {
  const below = ['docs', 'xtdb'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name.split('\\').join('/')}`),
  );
  return [...readdirSync(root), ...below].filter((name) => name.endsWith('.md'));
}
