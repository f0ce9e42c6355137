import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';

/**
 * How V8 is told to work for one answer: each flag, and what it is unless it is told. The HTTP client's parser is WebAssembly: compiling it again for speed, all at once or
 * function by function, takes longer than a question does, and the process would not end before. What runs a thousand times in a question is not worth compiling for speed
 * either, at a seventh of this budget, as V8 would; what runs for a second is. Nor is it worth looking through what is kept beside other work, for a collection that a
 * question ends before, or needs at once.
 */
const FLAGS: readonly (readonly [ours: string, first: string])[] = [
  ['--no-wasm-tier-up', '--wasm-tier-up'],
  ['--no-wasm-dynamic-tiering', '--wasm-dynamic-tiering'],
  // V8 of Node 22 and later counts calls in its place, and writes an error for what it does not know.
  ...(process.versions.v8.startsWith('11.3.') ? [['--interrupt-budget=500000', '--interrupt-budget=67584'] as const] : []),
  ['--no-incremental-marking', '--incremental-marking'],
];

/** Whether something is being loaded. */
let isLoading = false;

/**
 * Does something under the flags that V8 begins with, and leaves it with ours. V8 takes compiled code under the flags alone that it was compiled under: Node's own modules
 * come with such code, which takes a third of the time.
 */
export function underFirstFlags<T>(work: () => T): T {
  if (isLoading) return work();
  isLoading = true;
  for (const [, first] of FLAGS) setFlagsFromString(first);
  try {
    return work();
  } finally {
    for (const [ours] of FLAGS) setFlagsFromString(ours);
    isLoading = false;
  }
}

/** A script of the build, and what V8 made of it. */
export interface CompiledScript {
  readonly script: Script;
  /** What it gave away so far. */
  readonly exports: object;
}

/** What the build's scripts are given, in this order: besides what every script of Node has, what loads another one later, what
 * stands for a module of Node that is loaded where it is used, and the script's own address. */
const PARAMETERS = 'exports, require, module, __load, __late, __url';

/** The scripts that this process has loaded, by their paths. */
const loaded = new Map<string, CompiledScript>();

/** Where the code lies that this very Node compiled of a script when the project was built: what another one compiled, it cannot use. */
export const codeFileOf = (path: string): string => `${path}.${process.version}-${process.platform}-${process.arch}`;

function codeOf(path: string): Buffer | undefined {
  try {
    return readFileSync(codeFileOf(path));
  } catch {
    return undefined;
  }
}

/** What stands for a module whose members are used by name alone: it is loaded when the first one is. */
function lateModule(load: () => object): object {
  let module: object | undefined;
  const get = (_: object, name: string | symbol): unknown => {
    module ??= underFirstFlags(load);
    return Reflect.get(module, name);
  };
  return new Proxy({}, { get });
}

/**
 * Loads a script of the build, once in a process, with the scripts beside it that it names (`./x.cjs`), from code that was compiled when the project was built. Where there is no
 * such code, or V8 refuses it as that of another version or with other flags, the script is compiled as any other. Throws what the script throws.
 */
export const loadScript = (path: string): CompiledScript => loaded.get(path) ?? underFirstFlags(() => load(path));

function load(path: string): CompiledScript {
  const module: { exports: object } = { exports: {} };
  const cachedData = codeOf(path);
  const script = new Script(`(function(${PARAMETERS}){${readFileSync(path, 'utf8')}\n})`, {
    filename: path,
    ...(cachedData === undefined ? {} : { cachedData }),
  });
  const entry: CompiledScript = {
    script,
    get exports() {
      return module.exports;
    },
  };
  loaded.set(path, entry);
  const besides = (name: string): object => loadScript(join(dirname(path), name)).exports;
  const others = createRequire(path);
  const body: (...given: readonly unknown[]) => void = script.runInThisContext();
  const url = pathToFileURL(path).href;
  const isBeside = (name: string): boolean => name.startsWith('./');
  const required = (name: string): unknown => (isBeside(name) ? besides(name) : underFirstFlags(() => others(name)));
  // A script that runs from compiled code has no import of its own.
  const later = async (name: string): Promise<object> =>
    isBeside(name) ? besides(name) : import(name.startsWith('../') ? new URL(name, url).href : name);
  body(module.exports, required, module, later, (name: string) => lateModule(() => others(name)), url);
  return entry;
}

/** What this process has loaded so. */
export const loadedScripts = (): ReadonlyMap<string, CompiledScript> => loaded;
