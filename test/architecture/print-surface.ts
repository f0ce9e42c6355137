import { readFileSync } from 'node:fs';
import { posix } from 'node:path';
import { documents, type SourceFile, sourceFiles } from './source-tree.js';

/**
 * Prints every command with its flags and the size of the code behind it, and every environment
 * variable. It marks flags and variables that no document and no test names.
 */

/** A command as its file declares it. */
interface DeclaredCommand {
  readonly name: string;
  readonly flags: readonly string[];
  /** The files that the command loads when it runs. */
  readonly loads: ReadonlySet<string>;
}

const files = sourceFiles('src');
const byPath = new Map(files.map((file) => [file.path, file]));
const readers = [
  ...documents().map((path) => readFileSync(path, 'utf8')),
  ...sourceFiles('test').map((one) => one.text),
];
const mark = (name: string): string => (readers.some((text) => text.includes(name)) ? name : `${name} (unnamed)`);

const beside = (path: string, file = ''): string => posix.join(posix.dirname(path), file).replace(/\.js$/, '.ts');

/** Returns the files that run with a file: its imports, except type-only ones. */
const runs = ({ path, text }: SourceFile): readonly string[] =>
  [...text.matchAll(/^(?:import (?!type )[^;]*?from |export [^;]*?from |.*?import\()'(\.[^']+)'/gm)].map(([, file]) =>
    beside(path, file),
  );

function loadedFrom(entries: readonly string[]): ReadonlySet<string> {
  const loaded = new Set<string>();
  const waiting = [...entries];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const file = byPath.get(path);
    if (file === undefined || loaded.has(path)) continue;
    loaded.add(path);
    waiting.push(...runs(file));
  }
  return loaded;
}

function commandsIn(file: SourceFile): readonly DeclaredCommand[] {
  const { path, text } = file;
  const lazy = [...text.matchAll(/const (\w+) = \(\) => import\('([^']+)'\)/g)];
  const starts = [...text.matchAll(/new Command\('([\w-]+)'\)/g)].filter(([, name]) => name !== 'palimpsest');
  return starts.map((start, i) => {
    const declared = starts.length === 1 ? text : text.slice(start.index, starts[i + 1]?.index);
    const own = [
      ...[...declared.matchAll(/import\('(\.[^']+)'\)/g)].map(([, loaded]) => beside(path, loaded)),
      ...lazy.flatMap(([, called, loaded]) => (declared.includes(`${called}()`) ? [beside(path, loaded)] : [])),
    ];
    return {
      name: start[1] ?? '',
      flags: [...new Set([...declared.matchAll(/'(?:-\w, )?(--\w[\w-]*)/g)].map(([, flag = '']) => flag))],
      loads: loadedFrom(starts.length === 1 || own.length === 0 ? runs(file) : own),
    };
  });
}

const size = (paths: Iterable<string>): number =>
  [...paths].reduce((sum, path) => sum + (byPath.get(path)?.text.split('\n').length ?? 1) - 1, 0);

const commands = files.filter(({ path }) => path !== 'src/program.ts').flatMap(commandsIn);
console.log('commands: lines that no other command loads, of the lines that it loads; its flags');
for (const { name, loads, flags } of commands) {
  const others = new Set(commands.flatMap((other) => (other.name === name ? [] : [...other.loads])));
  const own = [...loads].filter((path) => !others.has(path));
  console.log(`  ${name}: ${size(own)} of ${size(loads)}; ${flags.map(mark).join(' ')}`);
}
console.log('variables: the files that name each');
const NAME = /'((?:PALIMPSEST|XTDB|OTEL)_[A-Z_]+)'|env\.((?:PALIMPSEST|XTDB|OTEL)_[A-Z_]+)/g;
const variables = files.flatMap(({ text }) =>
  [...text.matchAll(NAME)].map(([, quoted, member]) => quoted ?? member ?? ''),
);
for (const name of [...new Set(variables)].sort())
  console.log(`  ${mark(name)}: ${files.filter(({ text }) => text.includes(name)).length}`);
