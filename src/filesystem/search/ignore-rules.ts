import { constants, type Dirent } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { posix } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { entryPath } from '../access/open-inside.js';
import { bytesOf, type IgnorePattern, type MatchEffort, readIgnorePattern } from './ignore-pattern.js';

/** The rules of one file. */
interface Rules {
  /** The folder that they hold in, in bytes, with a slash at its end. */
  readonly base: string;
  /** The last one first: it wins. */
  readonly patterns: readonly IgnorePattern[];
}

const IGNORE_FILE = '.gitignore';
const REPOSITORY = '.git';
/** Rules of one clone, weaker than those of any `.gitignore`. */
const EXCLUDE_FILE = [REPOSITORY, 'info', 'exclude'] as const;

const LARGEST_FILE = 1024 * 1024;
/** Rules that hold in one folder, those of the folders above included. What is behind them is passed over: each of them is tried for every path. */
const MOST_RULES = 20_000;
/** Characters of those with wildcards, those like `*.log` not counted: each character may be tried at every byte of a path. */
const MOST_COSTLY = 64 * 1024;
/** Comparisons for one path, some milliseconds; rules that are not reached by then do not hold for it. */
const MOST_STEPS = 1_000_000;
/** Milliseconds after which other work of the process gets its turn. */
const TURN = 20;
const LINES_AT_ONCE = 1_000;
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Whether a path is a `.git` or lies in one; such paths are never discovered (decision C7). */
export function isInGitFolder(path: string): boolean {
  return path.split('/').includes(REPOSITORY);
}

/** How many more rules, and characters of those with wildcards, a folder may bring. */
interface Room {
  readonly rules: number;
  readonly costly: number;
}

const WHOLE_ROOM: Room = { rules: MOST_RULES, costly: MOST_COSTLY };

/** The rules of some folders, each below the one after it, and how many more there may be. */
interface Chain {
  /** The deepest first. */
  readonly rules: readonly Rules[];
  readonly room: Room;
}

const NO_RULES: Chain = { rules: [], room: WHOLE_ROOM };

/** What a folder brings of its own. */
interface OwnRules {
  /** Where its entries are read: its path, or one through a handle of it. */
  readonly at: string;
  /** Whether it is the top of a repository. */
  readonly isTop: boolean;
  readonly hasFile: boolean;
}

/** What a folder with these entries brings of its own. `at` is where they are read. */
export function ownRules(at: string, entries: readonly Dirent<Buffer>[]): OwnRules {
  const named = (name: string) => entries.find((entry) => entry.name.equals(Buffer.from(name)));
  return { at, isTop: named(REPOSITORY) !== undefined, hasFile: named(IGNORE_FILE)?.isFile() === true };
}

/**
 * The ignore rules that hold in one folder: its own `.gitignore` and those of the folders above, up to the top of the repository, and `.git/info/exclude` of that top.
 * The top of a repository inside another one begins anew, as it does for git. Immutable; {@link IgnoreRules.enter} gives those of a subfolder. Deeper rules win over
 * higher ones, as in git. However many rules a repository brings, a verdict takes milliseconds: of more than 20,000 those nearest to the top hold.
 */
export class IgnoreRules {
  /** The folder below which paths are judged; it is not ignored by the chain itself. */
  readonly #folder: string;
  readonly #chain: Chain;
  /** Whether the folder itself is ignored by the rules above it. */
  readonly folderIgnored: boolean;

  private constructor(folder: string, chain: Chain, folderIgnored: boolean) {
    this.#folder = folder;
    this.#chain = chain;
    this.folderIgnored = folderIgnored;
  }

  /** Reads the rules that hold in a folder. In one that is itself ignored only its own hold, not those above: it was named on purpose. */
  static async load(folder: string): Promise<IgnoreRules> {
    const above = await foldersAbove(folder);
    let chain = NO_RULES;
    for (const one of above) chain = await withRules(chain, one, await rulesAt(one));
    const folderIgnored = new IgnoreRules(above[0] ?? folder, chain, false).ignores(folder, true);
    return new IgnoreRules(folder, await withRules(folderIgnored ? NO_RULES : chain, folder, await rulesAt(folder)), folderIgnored);
  }

  /** The rules of a subfolder that is not ignored. */
  async enter(subfolder: string, own: OwnRules): Promise<IgnoreRules> {
    return new IgnoreRules(subfolder, await withRules(this.#chain, subfolder, own), this.folderIgnored);
  }

  /** Whether a path below the folder is ignored, by its own name or that of a folder on the way. */
  ignores(path: string, isFolder: boolean): boolean {
    if (posix.basename(path) === REPOSITORY) return true;
    const { rules } = this.#chain;
    const bytes = bytesOf(path);
    const top = below(bytesOf(this.#folder)).length;
    const effort: MatchEffort = { left: MOST_STEPS };
    for (let end = bytes.indexOf('/', top); end >= 0; end = bytes.indexOf('/', end + 1)) {
      if (ignoresItself(rules, { path: bytes.slice(0, end), isFolder: true }, effort)) return true;
    }
    return bytes.length > top && ignoresItself(rules, { path: bytes, isFolder }, effort);
  }
}

/** The verdict of the deepest rules that have one. */
function ignoresItself(
  chain: readonly Rules[],
  { path, isFolder }: { readonly path: string; readonly isFolder: boolean },
  effort: MatchEffort,
): boolean {
  for (const { base, patterns } of chain) {
    if (!path.startsWith(base)) continue;
    const relative = path.slice(base.length);
    const deciding = patterns.find((pattern) => pattern.matches(relative, isFolder, effort));
    if (deciding !== undefined) return !deciding.negated;
  }
  return false;
}

const below = (folder: string): string => (folder === '/' ? '/' : `${folder}/`);

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

/** The folders above one, up to the top of the repository that it lies in, that top first. */
async function foldersAbove(folder: string): Promise<readonly string[]> {
  const above: string[] = [];
  for (let current = folder; current !== '/' && !(await isRepositoryTop(current)); ) {
    current = posix.dirname(current);
    above.push(current);
  }
  return above.reverse();
}

async function isRepositoryTop(folder: string): Promise<boolean> {
  return (await lstat(posix.join(folder, REPOSITORY)).catch(() => undefined)) !== undefined;
}

const rulesAt = async (folder: string): Promise<OwnRules> => ({ at: folder, isTop: await isRepositoryTop(folder), hasFile: true });

/** A chain with the rules of one folder more. */
async function withRules(chain: Chain, folder: string, { at, isTop, hasFile }: OwnRules): Promise<Chain> {
  const above = isTop ? await withFile(NO_RULES, folder, [at, ...EXCLUDE_FILE]) : chain;
  return hasFile ? withFile(above, folder, [at, IGNORE_FILE]) : above;
}

/** Opens a file by the names on its way, none of which may be a link: whoever made the repository chose them. */
async function openWithoutLinks([folder, name, ...rest]: readonly string[]): Promise<FileHandle> {
  const path = posix.join(folder ?? '/', name ?? '');
  if (rest.length === 0) return open(path, FLAGS);
  const handle = await open(path, FLAGS | constants.O_DIRECTORY);
  return openWithoutLinks([entryPath(handle, path, ''), ...rest]).finally(() => handle.close());
}

/** A chain with the rules of one file more; the same one where that is no readable regular file, or says nothing. */
async function withFile(chain: Chain, folder: string, names: readonly string[]): Promise<Chain> {
  const handle = await openWithoutLinks(names).catch(() => undefined);
  if (handle === undefined) return chain;
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > LARGEST_FILE) return chain;
    const { patterns, room } = await readPatterns(await handle.readFile('latin1'), chain.room);
    return patterns.length === 0 ? chain : { rules: [{ base: below(bytesOf(folder)), patterns }, ...chain.rules], room };
  } catch {
    return chain;
  } finally {
    await handle.close();
  }
}

/** The patterns of a file in bytes, the last one first, as far as there is room for them. */
async function readPatterns(text: string, room: Room): Promise<{ readonly patterns: readonly IgnorePattern[]; readonly room: Room }> {
  const patterns: IgnorePattern[] = [];
  const takeTurns = turnTaker();
  let { rules, costly } = room;
  let at = text.startsWith('\xef\xbb\xbf') ? 3 : 0;
  for (let line = 0; at < text.length && rules > 0; line += 1) {
    if (line % LINES_AT_ONCE === 0) await takeTurns();
    const next = text.indexOf('\n', at);
    const end = next < 0 ? text.length : next;
    const pattern = readIgnorePattern(text.slice(at, text[end - 1] === '\r' ? Math.max(at, end - 1) : end));
    at = end + 1;
    if (pattern === undefined) continue;
    costly -= pattern.cost;
    if (pattern.cost > 0 && costly < 0) continue;
    patterns.push(pattern);
    rules -= 1;
  }
  return { patterns: patterns.reverse(), room: { rules, costly: Math.max(0, costly) } };
}
