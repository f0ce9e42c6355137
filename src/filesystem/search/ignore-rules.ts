import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { posix } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { bytesOf, type IgnorePattern, readIgnorePattern } from './ignore-pattern.js';

/** The rules of one `.gitignore`. */
interface Rules {
  /** The folder that it lies in. */
  readonly base: string;
  /** The last one first: it wins. */
  readonly patterns: readonly IgnorePattern[];
}

const LARGEST_FILE = 1024 * 1024;
/** Characters of patterns with wildcards in one file, those like `*.log` not counted. What is behind them is passed over: each of them may be tried at every byte of a path. */
const MOST_COSTLY = 64 * 1024;
/** Milliseconds after which other work of the process gets its turn. */
const TURN = 20;
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Whether a path is a `.git` or lies in one; such paths are never discovered (decision C7). */
export function isInGitFolder(path: string): boolean {
  return path.split('/').includes('.git');
}

/**
 * The ignore rules that hold in one folder: its own `.gitignore` and those of the folders above, up to the top of the repository.
 * Immutable; {@link IgnoreRules.enter} gives those of a subfolder. Deeper rules win over higher ones, as in git.
 */
export class IgnoreRules {
  /** The folder below which paths are judged; it is not ignored by the chain itself. */
  readonly #folder: string;
  /** The deepest first. */
  readonly #chain: readonly Rules[];
  /** Whether the folder itself is ignored by the rules above it. */
  readonly folderIgnored: boolean;

  private constructor(folder: string, chain: readonly Rules[], folderIgnored: boolean) {
    this.#folder = folder;
    this.#chain = chain;
    this.folderIgnored = folderIgnored;
  }

  /** Reads the rules that hold in a folder. In one that is itself ignored only its own hold, not those above: it was named on purpose. */
  static async load(folder: string): Promise<IgnoreRules> {
    const above = await rulesAbove(folder);
    const folderIgnored = new IgnoreRules(above.at(-1)?.base ?? folder, above, false).ignores(folder, true);
    const own = await readRules(folder);
    return new IgnoreRules(folder, [...(own === undefined ? [] : [own]), ...(folderIgnored ? [] : above)], folderIgnored);
  }

  /** The rules of a subfolder that is not ignored. */
  async enter(subfolder: string): Promise<IgnoreRules> {
    const own = await readRules(subfolder);
    return new IgnoreRules(subfolder, own === undefined ? this.#chain : [own, ...this.#chain], this.folderIgnored);
  }

  /** Whether a path below the folder is ignored, by its own name or that of a folder on the way. */
  ignores(path: string, isFolder: boolean): boolean {
    if (posix.basename(path) === '.git') return true;
    const top = below(this.#folder, '').length;
    for (let end = path.indexOf('/', top); end >= 0; end = path.indexOf('/', end + 1)) {
      if (this.#ignoresItself(path.slice(0, end), true)) return true;
    }
    return path.length > top && this.#ignoresItself(path, isFolder);
  }

  /** The verdict of the deepest file that has one. */
  #ignoresItself(path: string, isFolder: boolean): boolean {
    for (const { base, patterns } of this.#chain) {
      const folder = below(base, '');
      if (patterns.length === 0 || !path.startsWith(folder)) continue;
      const relative = bytesOf(path.slice(folder.length));
      const deciding = patterns.find((pattern) => pattern.matches(relative, isFolder));
      if (deciding !== undefined) return !deciding.negated;
    }
    return false;
  }
}

const below = (folder: string, name: string): string => (folder === '/' ? `/${name}` : `${folder}/${name}`);

/** Lets other work of the process have its turn from time to time: the rules of a repository may be costly for many names. */
export function turnTaker(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < TURN) return undefined;
    return setImmediate().then(() => {
      since = performance.now();
    });
  };
}

/** The names of a folder's entries that are ignored; all of them where the folder itself is, or lies in a `.git`. */
export async function ignoredNames(
  folder: string,
  entries: readonly { readonly name: string; readonly isFolder: boolean }[],
): Promise<ReadonlySet<string>> {
  const rules = await IgnoreRules.load(folder);
  const all = rules.folderIgnored || isInGitFolder(folder);
  const names = new Set<string>();
  const takeTurns = turnTaker();
  for (const { name, isFolder } of entries) {
    await takeTurns();
    if (all || rules.ignores(posix.join(folder, name), isFolder)) names.add(name);
  }
  return names;
}

/** The rules of the folders above, deepest first, up to the top of the repository that `folder` lies in. */
async function rulesAbove(folder: string): Promise<readonly Rules[]> {
  const above: Rules[] = [];
  let current = folder;
  while (current !== '/' && !(await isRepositoryTop(current))) {
    current = posix.dirname(current);
    const rules = await readRules(current);
    if (rules !== undefined) above.push(rules);
  }
  return above;
}

function isRepositoryTop(folder: string): Promise<boolean> {
  return lstat(posix.join(folder, '.git')).then(
    () => true,
    () => false,
  );
}

/** The rules of one folder; `undefined` where it has no readable regular `.gitignore`. */
async function readRules(folder: string): Promise<Rules | undefined> {
  const handle = await open(posix.join(folder, '.gitignore'), FLAGS).catch(() => undefined);
  if (handle === undefined) return undefined;
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > LARGEST_FILE) return undefined;
    const text = await handle.readFile('utf8');
    return { base: folder, patterns: readPatterns(text.replace(/^\ufeff/, '')) };
  } catch {
    return undefined;
  } finally {
    await handle.close();
  }
}

/** The patterns of a file, the last one first. */
function readPatterns(text: string): readonly IgnorePattern[] {
  const patterns: IgnorePattern[] = [];
  let costly = 0;
  for (const line of bytesOf(text).split('\n')) {
    const pattern = readIgnorePattern(line.endsWith('\r') ? line.slice(0, -1) : line);
    costly += pattern?.cost ?? 0;
    if (pattern !== undefined && (pattern.cost === 0 || costly <= MOST_COSTLY)) patterns.push(pattern);
  }
  return patterns.reverse();
}
