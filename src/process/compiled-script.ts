import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { Script } from 'node:vm';

/**
 * V8 flags for a process that gives one answer: each flag with its default. The HTTP client's
 * parser is WebAssembly. Optimising it, at once or per function, takes longer than a question and
 * delays the exit. The interrupt budget delays optimising JavaScript. V8's default is a seventh of
 * ours, which pays only for code that runs for a second. Incremental marking does not pay either,
 * because the process ends before a collection, or needs it at once.
 */
const FLAGS: readonly (readonly [ours: string, first: string])[] = [
  ['--no-wasm-tier-up', '--wasm-tier-up'],
  ['--no-wasm-dynamic-tiering', '--wasm-dynamic-tiering'],
  // V8 of Node 22 and later has another flag for this budget, and prints an error for unknown
  // flags.
  ...(process.versions.v8.startsWith('11.3.')
    ? [['--interrupt-budget=500000', '--interrupt-budget=67584'] as const]
    : []),
  ['--no-incremental-marking', '--incremental-marking'],
];

let isLoading = false;

/**
 * Runs `work` under V8's default flags, then restores ours. V8 accepts cached code only under the
 * flags with which it was compiled. Node's own modules have such code, which loads in a third of
 * the time.
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

/** A script of the build and its compiled form. */
export interface CompiledScript {
  readonly script: Script;
  /** Its exports so far. */
  readonly exports: object;
}

/**
 * The parameters of a script of the build, in order. Three are not Node's: a function that loads
 * another script later, one that loads a Node module on first use, and the script's URL.
 */
const PARAMETERS = 'exports, require, module, __filename, __load, __late, __url';

/** The loaded scripts of this process, by path. */
const loaded = new Map<string, CompiledScript>();

/**
 * Returns the path of a script's compiled code for exactly this Node. Another Node's code would be
 * rejected.
 */
export const codeFileOf = (path: string): string => `${path}.${process.version}-${process.platform}-${process.arch}`;

function codeOf(path: string): Buffer | undefined {
  try {
    return readFileSync(codeFileOf(path));
  } catch {
    return undefined;
  }
}

/**
 * Returns a placeholder for a module whose members are only used by name. The first access loads
 * the module.
 */
function lateModule(load: () => object): object {
  let module: object | undefined;
  const get = (_: object, name: string | symbol): unknown => {
    module ??= underFirstFlags(load);
    return Reflect.get(module, name);
  };
  return new Proxy({}, { get });
}

/**
 * Loads a script of the build, and the scripts beside it that it names (`./x.cjs`), once per
 * process. Uses the code that the build compiled. If that code is missing, or V8 rejects it because
 * of its version or flags, the script is compiled as usual. Throws what the script throws.
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
  // Replaces `import`, which a script cannot use if it runs from compiled code.
  const later = async (name: string): Promise<object> =>
    isBeside(name) ? besides(name) : import(name.startsWith('../') ? new URL(name, url).href : name);
  body(module.exports, required, module, path, later, (name: string) => lateModule(() => others(name)), url);
  return entry;
}

/** Returns the scripts that this process has loaded from the build. */
export const loadedScripts = (): ReadonlyMap<string, CompiledScript> => loaded;
