import { constants, type Dirent } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';
import { posix } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { toNative } from '../access/native-path.js';
import { entryPath } from '../access/open-inside.js';
import { bytesOf, type IgnorePattern, type MatchEffort, readIgnorePattern } from './ignore-pattern.js';

/** The rules of one file. */
interface Rules {
  /** The folder that they apply to, in bytes, with a trailing slash. */
  readonly base: string;
  /** The last pattern of the file comes first, because it wins. */
  readonly patterns: readonly IgnorePattern[];
}

const IGNORE_FILE = '.gitignore';
const REPOSITORY = '.git';
/** The file with the rules of one clone. Any `.gitignore` takes precedence over them. */
const EXCLUDE_FILE = [REPOSITORY, 'info', 'exclude'] as const;

const LARGEST_FILE = 1024 * 1024;
/**
 * Maximum number of rules for one folder, including those of its parents. Further rules are
 * skipped, because each rule is tried for every path.
 */
const MOST_RULES = 20_000;
/**
 * Maximum total characters of rules with wildcards, except those like `*.log`. Each character may
 * be tried at every byte of a path.
 */
const MOST_COSTLY = 64 * 1024;
/** Maximum comparisons per path (some milliseconds). Rules beyond it do not apply to that path. */
const MOST_STEPS = 1_000_000;
/** Milliseconds after which matching yields to other work of the process. */
const TURN = 20;
const LINES_AT_ONCE = 1_000;
const FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Returns whether a path is a `.git` or lies in one. Such paths are never discovered (decision C7).
 */
export function isInGitFolder(path: string): boolean {
  return path.split('/').includes(REPOSITORY);
}

/**
 * The remaining numbers of rules, and of characters of rules with wildcards, that folders may add.
 */
interface Room {
  readonly rules: number;
  readonly costly: number;
}

const WHOLE_ROOM: Room = { rules: MOST_RULES, costly: MOST_COSTLY };

/** The rules of nested folders, deepest first, and the remaining room. */
interface Chain {
  /** The rules of the deepest folder come first. */
  readonly rules: readonly Rules[];
  readonly room: Room;
}

const NO_RULES: Chain = { rules: [], room: WHOLE_ROOM };

/** A folder's own rules. */
interface OwnRules {
  /** The path for reading the folder's entries: the folder's path, or one through its handle. */
  readonly at: string;
  /** Whether it is the top of a repository. */
  readonly isTop: boolean;
  readonly hasFile: boolean;
}

/** Returns a folder's own rules, given its entries. `at` is the path for reading them. */
export function ownRules(at: string, entries: readonly Dirent<Buffer>[]): OwnRules {
  const named = (name: string) => entries.find((entry) => entry.name.equals(Buffer.from(name)));
  return { at, isTop: named(REPOSITORY) !== undefined, hasFile: named(IGNORE_FILE)?.isFile() === true };
}

/**
 * The ignore rules of one folder: its own `.gitignore`, those of its parents up to the top of the
 * repository, and that top's `.git/info/exclude`. As in git, a nested repository ignores the rules
 * above it, and deeper rules win. Immutable; {@link IgnoreRules.enter} returns the rules of a
 * subfolder. A check takes milliseconds for any number of rules. Beyond 20,000 rules, only those
 * nearest to the top apply.
 */
export class IgnoreRules {
  /** The folder whose content is checked. The rules do not ignore the folder itself. */
  readonly #folder: string;
  readonly #chain: Chain;
  /** Whether the rules above the folder ignore it. */
  readonly folderIgnored: boolean;

  private constructor(folder: string, chain: Chain, folderIgnored: boolean) {
    this.#folder = folder;
    this.#chain = chain;
    this.folderIgnored = folderIgnored;
  }

  /**
   * Loads the rules of a folder. If the folder itself is ignored, only its own rules apply, because
   * it was named explicitly.
   */
  static async load(folder: string): Promise<IgnoreRules> {
    const above = await foldersAbove(folder);
    let chain = NO_RULES;
    for (const one of above) chain = await withRules(chain, one, await rulesAt(one));
    const folderIgnored = new IgnoreRules(above[0] ?? folder, chain, false).ignores(folder, true);
    return new IgnoreRules(
      folder,
      await withRules(folderIgnored ? NO_RULES : chain, folder, await rulesAt(folder)),
      folderIgnored,
    );
  }

  /** Returns the rules of a subfolder that is not ignored. */
  async enter(subfolder: string, own: OwnRules): Promise<IgnoreRules> {
    return new IgnoreRules(subfolder, await withRules(this.#chain, subfolder, own), this.folderIgnored);
  }

  /**
   * Returns whether a path below the folder is ignored, by its own name or that of a parent folder.
   */
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

/** Returns whether the deepest rules that match a path ignore it. */
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

/**
 * Returns a function that yields to other work of the process from time to time. Matching many
 * names against a repository's rules may be expensive.
 */
export function turnTaker(): () => Promise<void> | undefined {
  let since = performance.now();
  return () => {
    if (performance.now() - since < TURN) return undefined;
    return setImmediate().then(() => {
      since = performance.now();
    });
  };
}

/**
 * Returns the ignored names of a folder's entries. All of them if the folder itself is ignored or
 * lies in a `.git`.
 */
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

/** Returns the parent folders up to the top of the repository, that top first. */
async function foldersAbove(folder: string): Promise<readonly string[]> {
  const above: string[] = [];
  for (let current = folder; current !== '/' && !(await isRepositoryTop(current)); ) {
    current = posix.dirname(current);
    above.push(current);
  }
  return above.reverse();
}

async function isRepositoryTop(folder: string): Promise<boolean> {
  return (await lstat(toNative(posix.join(folder, REPOSITORY))).catch(() => undefined)) !== undefined;
}

const rulesAt = async (folder: string): Promise<OwnRules> => ({
  at: folder,
  isTop: await isRepositoryTop(folder),
  hasFile: true,
});

/** Returns a chain extended by one folder's rules. */
async function withRules(chain: Chain, folder: string, { at, isTop, hasFile }: OwnRules): Promise<Chain> {
  const above = isTop ? await withFile(NO_RULES, folder, [at, ...EXCLUDE_FILE]) : chain;
  return hasFile ? withFile(above, folder, [at, IGNORE_FILE]) : above;
}

/**
 * Opens a file folder by folder and rejects links, because the repository's author may have chosen
 * their targets.
 */
async function openWithoutLinks([folder, name, ...rest]: readonly string[]): Promise<FileHandle> {
  const path = toNative(posix.join(folder ?? '/', name ?? ''));
  if (rest.length === 0) return open(path, FLAGS);
  const handle = await open(path, FLAGS | constants.O_DIRECTORY);
  return openWithoutLinks([entryPath(handle, path, ''), ...rest]).finally(() => handle.close());
}

/**
 * Returns a chain extended by one file's rules; the same chain if there is no readable regular file
 * or no rule.
 */
async function withFile(chain: Chain, folder: string, names: readonly string[]): Promise<Chain> {
  const handle = await openWithoutLinks(names).catch(() => undefined);
  if (handle === undefined) return chain;
  try {
    const stats = await handle.stat();
    if (!stats.isFile() || stats.size > LARGEST_FILE) return chain;
    const { patterns, room } = await readPatterns(await handle.readFile('latin1'), chain.room);
    return patterns.length === 0
      ? chain
      : { rules: [{ base: below(bytesOf(folder)), patterns }, ...chain.rules], room };
  } catch {
    return chain;
  } finally {
    await handle.close();
  }
}

/** Returns the patterns of a file in bytes, last one first, as far as the room allows. */
async function readPatterns(
  text: string,
  room: Room,
): Promise<{ readonly patterns: readonly IgnorePattern[]; readonly room: Room }> {
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
