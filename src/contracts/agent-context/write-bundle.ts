import { lstat, mkdir, open, readdir, readFile, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { canonicalJson } from '../../objects/canonical-json.js';
import { draftOf, removeDeadDrafts } from '../../process/drafts.js';
import { rename } from '../../process/held-files.js';
import { systemCode, unlessMissing } from '../../process/system-error.js';
import { defined } from '../../values/defined.js';
import { BUNDLE_PARTS, type Bundle, objectsOf, PART_NAMES } from './bundle-parts.js';
import { AgentContextError } from './check-bundle.js';

/** The result of writing a bundle. */
export interface WrittenBundle {
  /** The absolute path of the folder. */
  readonly folder: string;
  /** False if the folder already held the same bundle. */
  readonly isNew: boolean;
  readonly files: readonly string[];
}

/** Returns the files of a bundle as canonical JSON, one object per line. */
export function bundleFiles(bundle: Bundle): ReadonlyMap<string, string> {
  return new Map(
    PART_NAMES.map((part) => [
      BUNDLE_PARTS[part].file,
      objectsOf(bundle, part)
        .map((one) => `${canonicalJson(defined(one))}\n`)
        .join(''),
    ]),
  );
}

async function holdsTheSame(folder: string, files: ReadonlyMap<string, string>): Promise<boolean> {
  for (const [name, text] of files) {
    const path = join(folder, name);
    const found = await unlessMissing(lstat(path));
    if (found?.isFile() !== true || found.size !== Buffer.byteLength(text) || (await readFile(path, 'utf8')) !== text)
      return false;
  }
  return true;
}

/**
 * Returns true if the folder is missing or empty, and false if it holds the same bundle. Throws
 * otherwise.
 */
async function isFree(folder: string, files: ReadonlyMap<string, string>): Promise<boolean> {
  const found = await unlessMissing(lstat(folder));
  if (found === undefined) return true;
  if (!found.isDirectory()) {
    const what = found.isSymbolicLink() ? 'a symbolic link' : 'not a folder';
    throw new AgentContextError('not-a-folder', `${folder} is ${what}: name a new or an empty folder`);
  }
  const names = await readdir(folder);
  if (names.length === 0) return true;
  const foreign = names.find((name) => !files.has(name));
  if (foreign !== undefined)
    throw new AgentContextError(
      'folder-in-use',
      `${folder} holds ${JSON.stringify(foreign)}, which is not part of a bundle: name another folder`,
    );
  if (await holdsTheSame(folder, files)) return false;
  throw new AgentContextError(
    'folder-in-use',
    `${folder} holds another bundle, and a bundle is never overwritten: name another folder, or remove it`,
  );
}

async function writeWhole(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Writes a bundle as a new folder. All files appear with a single rename, so a failure leaves none.
 * Does nothing if the folder already holds the same bundle. New folders are private to the user.
 * Also removes the temporary folder that a killed export to the same folder left.
 * @throws {AgentContextError} `folder-in-use`, `not-a-folder`
 * @throws errors of the file system
 */
export async function writeBundle(bundle: Bundle, to: string): Promise<WrittenBundle> {
  const folder = resolve(to);
  const files = bundleFiles(bundle);
  const written = { folder, files: [...files.keys()] };
  const isNew = await isFree(folder, files);
  const parent = dirname(folder);
  const hidden = `.${basename(folder)}`;
  await removeDeadDrafts(parent, {
    isOurs: (name) => name.startsWith(`${hidden}.`) && name.endsWith('.draft'),
    recursive: true,
  });
  if (!isNew) return { ...written, isNew };
  const above = await unlessMissing(stat(parent));
  if (above !== undefined && !above.isDirectory())
    throw new AgentContextError('not-a-folder', `${parent} is not a folder: the bundle must be written into one`);
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const draft = await draftOf(join(parent, hidden));
  await mkdir(draft, { mode: 0o700 });
  try {
    for (const [name, text] of files) await writeWhole(join(draft, name), text);
    // `rmdir` removes only an empty folder. It fails if another program has put a file there
    // meanwhile.
    await unlessMissing(rmdir(folder));
    await rename(draft, folder);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemCode(error) ?? ''))
      throw new AgentContextError(
        'folder-in-use',
        `${folder} was filled by another program during the export: name another folder`,
        {
          cause: error,
        },
      );
    throw error;
  }
  return { ...written, isNew };
}
