import { lstat, mkdir, open, readdir, readFile, rename, rm, rmdir, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { canonicalJson } from '../../objects/canonical-json.js';
import { draftOf, removeDeadDrafts } from '../../process/drafts.js';
import { systemCode, unlessMissing } from '../../process/system-error.js';
import { defined } from '../../values/defined.js';
import { BUNDLE_PARTS, type Bundle, objectsOf, PART_NAMES } from './bundle-parts.js';
import { AgentContextError } from './check-bundle.js';

/** What became of a bundle that was to be written. */
export interface WrittenBundle {
  /** The folder by its whole path. */
  readonly folder: string;
  /** False: it held the same bundle already. */
  readonly isNew: boolean;
  readonly files: readonly string[];
}

/** The files of a bundle: canonical JSON, one object a line. */
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
    if (found?.isFile() !== true || found.size !== Buffer.byteLength(text) || (await readFile(path, 'utf8')) !== text) return false;
  }
  return true;
}

/** Whether a folder is free for a bundle: true where it is missing or empty, false where it holds the same one. */
async function isFree(folder: string, files: ReadonlyMap<string, string>): Promise<boolean> {
  const found = await unlessMissing(lstat(folder));
  if (found === undefined) return true;
  if (!found.isDirectory()) {
    const what = found.isSymbolicLink() ? 'a symbolic link' : 'no folder';
    throw new AgentContextError('not-a-folder', `${folder} is ${what}: name a folder that is not there yet, or an empty one`);
  }
  const names = await readdir(folder);
  if (names.length === 0) return true;
  const foreign = names.find((name) => !files.has(name));
  if (foreign !== undefined)
    throw new AgentContextError(
      'folder-in-use',
      `${folder} holds ${JSON.stringify(foreign)}, which is not of a bundle: name another folder`,
    );
  if (await holdsTheSame(folder, files)) return false;
  throw new AgentContextError(
    'folder-in-use',
    `${folder} holds another bundle, and a bundle is never written over: name another folder, or remove it`,
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
 * Writes a bundle as a folder of its own: all of its files appear at once, by one renaming, or none. A folder that holds the same bundle stays as it is. Folders that are made are for their user
 * alone; what a killed export of the same folder left beside it is removed.
 * @throws {AgentContextError} `folder-in-use`, `not-a-folder`; errors of the system
 */
export async function writeBundle(bundle: Bundle, to: string): Promise<WrittenBundle> {
  const folder = resolve(to);
  const files = bundleFiles(bundle);
  const written = { folder, files: [...files.keys()] };
  const isNew = await isFree(folder, files);
  const parent = dirname(folder);
  const hidden = `.${basename(folder)}`;
  await removeDeadDrafts(parent, { isOurs: (name) => name.startsWith(`${hidden}.`) && name.endsWith('.draft'), recursive: true });
  if (!isNew) return { ...written, isNew };
  const above = await unlessMissing(stat(parent));
  if (above !== undefined && !above.isDirectory())
    throw new AgentContextError('not-a-folder', `${parent} is no folder: the bundle is to be written into it`);
  await mkdir(parent, { recursive: true, mode: 0o700 });
  const draft = await draftOf(join(parent, hidden));
  await mkdir(draft, { mode: 0o700 });
  try {
    for (const [name, text] of files) await writeWhole(join(draft, name), text);
    // An empty folder gives way; one that somebody has filled in the meantime does not.
    await unlessMissing(rmdir(folder));
    await rename(draft, folder);
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(systemCode(error) ?? ''))
      throw new AgentContextError(
        'folder-in-use',
        `${folder} came to hold something else while the bundle was written: name another folder`,
        {
          cause: error,
        },
      );
    throw error;
  }
  return { ...written, isNew };
}
