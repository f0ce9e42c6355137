import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

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
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts') && !entry.name.endsWith('.d.ts'))
    .map((entry) => read(relative(root, join(entry.parentPath, entry.name)).split('\\').join('/')));
}

/** The room of a file below `src`: its folder, or `index` for the public surface. */
export function roomOf(path: string): string {
  const [, room = '', rest] = path.split('/');
  return rest === undefined ? room.replace(/\.ts$/, '') : room;
}
