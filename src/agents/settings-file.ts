import {
  chmod,
  chown,
  lstat,
  mkdir,
  readFile,
  readlink,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  writeFile,
} from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { draftOf } from '../process/drafts.js';
import { systemCode, unlessMissing } from '../process/system-error.js';
import { messageOf } from '../values/thrown.js';
import { SettingsError } from './errors.js';

/** A settings file as it is on disk. */
export interface SettingsFile {
  /** The path that the agent uses. */
  readonly path: string;
  /** The file that holds the bytes: behind all symbolic links. */
  readonly target: string;
  /** Undefined if the file does not exist. */
  readonly text: string | undefined;
}

/** Follows symbolic links, also to a file that does not exist yet. */
async function targetOf(path: string): Promise<string> {
  const found = await unlessMissing(realpath(path));
  if (found !== undefined) return found;
  const link = await unlessMissing(lstat(path));
  return link?.isSymbolicLink() === true ? targetOf(resolve(dirname(path), await readlink(path))) : path;
}

/**
 * Reads a settings file. @throws {SettingsError} unreadable – it is no file, is not UTF-8, or the
 *   system refuses
 */
export async function readSettingsFile(path: string): Promise<SettingsFile> {
  try {
    const target = await targetOf(path);
    const bytes = await unlessMissing(readFile(target));
    const text =
      bytes === undefined ? undefined : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { path, target, text };
  } catch (cause) {
    const why = systemCode(cause) === undefined ? 'it is not text in UTF-8' : messageOf(cause);
    throw new SettingsError('unreadable', `${path} cannot be read: ${why}. It was left as it is.`, { cause });
  }
}

/** Creates the folders of a file. Returns those that were missing, outermost first. */
async function makeFolders(path: string): Promise<readonly string[]> {
  const first = await mkdir(dirname(path), { recursive: true });
  const made: string[] = [];
  for (let folder = dirname(path); first !== undefined && folder.length >= first.length; folder = dirname(folder))
    made.unshift(folder);
  return made;
}

/**
 * Writes a settings file in one step, behind its links. Mode and, if permitted, owner stay. A new
 * file gets `newMode`. Returns the folders that it created. @throws {SettingsError}
 *   changed-meanwhile – the file no longer has the text that was read
 */
export async function writeSettingsFile(
  { path, target, text: before }: SettingsFile,
  text: string,
  { newMode }: { readonly newMode: number },
): Promise<readonly string[]> {
  const folders = await makeFolders(target);
  const draft = await draftOf(target);
  try {
    const found = await unlessMissing(stat(target));
    await writeFile(draft, text, { mode: 0o600, flag: 'wx', flush: true });
    if (found !== undefined && (found.uid !== process.getuid?.() || found.gid !== process.getgid?.()))
      // Only the superuser may give a file away.
      await chown(draft, found.uid, found.gid).catch((error: unknown) => {
        if (systemCode(error) !== 'EPERM') throw error;
      });
    await chmod(draft, found === undefined ? newMode : found.mode & 0o7777);
    if ((await readSettingsFile(path)).text !== before)
      throw new SettingsError(
        'changed-meanwhile',
        `${path} was changed meanwhile and left as it is. Run the command again.`,
      );
    await rename(draft, target);
    return folders;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Removes a settings file, and those of the folders that are empty then. */
export async function removeSettingsFile({ target }: SettingsFile, folders: readonly string[]): Promise<void> {
  await rm(target, { force: true });
  // A folder that others use by now stays.
  for (const folder of [...folders].reverse()) await rmdir(folder).catch(() => undefined);
}
