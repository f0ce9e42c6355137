import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { posix } from 'node:path';
import ignore, { type Ignore } from 'ignore';

/** The rules of one `.gitignore`. */
interface Rules {
  /** The folder that it lies in. */
  readonly base: string;
  readonly matcher: Ignore;
}

const LARGEST_FILE = 1024 * 1024;
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
  readonly #chain: readonly Rules[];
  /** Whether the folder itself is ignored by the rules above it. */
  readonly folderIgnored: boolean;

  private constructor(chain: readonly Rules[], folderIgnored: boolean) {
    this.#chain = chain;
    this.folderIgnored = folderIgnored;
  }

  /** Reads the rules that hold in a folder. In one that is itself ignored only its own hold, not those above: it was named on purpose. */
  static async load(folder: string): Promise<IgnoreRules> {
    const above = await rulesAbove(folder);
    const folderIgnored = new IgnoreRules(above, false).ignores(folder, true);
    const own = await readRules(folder);
    return new IgnoreRules([...(folderIgnored ? [] : above), ...(own === undefined ? [] : [own])], folderIgnored);
  }

  /** The rules of a subfolder. */
  async enter(subfolder: string): Promise<IgnoreRules> {
    const own = await readRules(subfolder);
    return own === undefined ? this : new IgnoreRules([...this.#chain, own], this.folderIgnored);
  }

  /** Whether a path below the folder is ignored, by its own name or that of a folder on the way. */
  ignores(path: string, isFolder: boolean): boolean {
    if (posix.basename(path) === '.git') return true;
    for (const { base, matcher } of this.#chain.toReversed()) {
      const verdict = matcher.test(`${posix.relative(base, path)}${isFolder ? '/' : ''}`);
      if (verdict.ignored) return true;
      if (verdict.unignored) return false;
    }
    return false;
  }
}

/** The names of a folder's entries that are ignored; all of them where the folder itself is, or lies in a `.git`. */
export async function ignoredNames(
  folder: string,
  entries: readonly { readonly name: string; readonly isFolder: boolean }[],
): Promise<ReadonlySet<string>> {
  const rules = await IgnoreRules.load(folder);
  const all = rules.folderIgnored || isInGitFolder(folder);
  return new Set(entries.filter(({ name, isFolder }) => all || rules.ignores(posix.join(folder, name), isFolder)).map(({ name }) => name));
}

/** The rules of the folders above, highest first, from the top of the repository that `folder` lies in. */
async function rulesAbove(folder: string): Promise<readonly Rules[]> {
  const above: Rules[] = [];
  let current = folder;
  while (current !== '/' && !(await isRepositoryTop(current))) {
    current = posix.dirname(current);
    const rules = await readRules(current);
    if (rules !== undefined) above.unshift(rules);
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
    return { base: folder, matcher: ignore({ ignorecase: false }).add(text.replace(/^\ufeff/, '')) };
  } catch {
    return undefined;
  } finally {
    await handle.close();
  }
}
