import { constants } from 'node:fs';
import { chmod, chown, lstat, mkdir, open, readlink, realpath, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve, sep } from 'node:path';
import { isWithin } from '../filesystem/access/mounts.js';
import { draftOf } from '../process/drafts.js';
import { rename } from '../process/held-files.js';
import { systemCode, unlessMissing } from '../process/system-error.js';
import { messageOf } from '../values/thrown.js';
import { SettingsError } from './errors.js';

/** A settings file as it is on disk. */
export interface SettingsFile {
  /** The path that the agent uses. */
  readonly path: string;
  /** The path of the file itself, with all links resolved. */
  readonly target: string;
  /** Undefined if the file does not exist. */
  readonly text: string | undefined;
  /** The folder that the file's links must not leave. */
  readonly within: string | undefined;
}

const slashed = (path: string): string => path.replaceAll(sep, '/');

/** Resolves symbolic links, even if the file or folder does not exist yet. */
async function targetOf(path: string): Promise<string> {
  const found = await unlessMissing(realpath(path));
  if (found !== undefined) return found;
  const link = await unlessMissing(lstat(path));
  if (link?.isSymbolicLink() === true) return targetOf(resolve(dirname(path), await readlink(path)));
  return dirname(path) === path ? path : join(await targetOf(dirname(path)), basename(path));
}

/** Maximum bytes of a settings file. People write settings, so a larger file is something else. */
const MOST_BYTES = 16_777_216;
/** Without `O_NONBLOCK`, opening a pipe would wait for a writer. */
const FLAGS = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0);

/** Reads a regular file of limited size. Undefined if the file does not exist. */
async function bytesOf(path: string): Promise<Buffer | undefined> {
  // Checked before opening, because opening a device can have effects.
  const found = await unlessMissing(stat(path));
  if (found === undefined) return undefined;
  if (!found.isFile())
    throw new SettingsError('unreadable', found.isDirectory() ? 'it is a folder' : 'it is not a file');
  const file = await open(path, FLAGS);
  try {
    const { size } = await file.stat();
    if (size > MOST_BYTES)
      throw new SettingsError('unreadable', `it has ${size} bytes, and settings have at most ${MOST_BYTES}`);
    return await file.readFile();
  } finally {
    await file.close();
  }
}

/**
 * Reads a settings file. Its links must not lead out of the folder `within`.
 * @throws {SettingsError} unreadable – it is not a file, is not UTF-8, has more than 16 MB, leads
 *   out of the folder, or the system refuses
 */
export async function readSettingsFile(path: string, within?: string): Promise<SettingsFile> {
  try {
    const target = await targetOf(path);
    if (within !== undefined && !isWithin(slashed(target), slashed(await realpath(within))))
      throw new SettingsError(
        'unreadable',
        `its links lead to ${target}, out of the project. Palimpsest does not follow them, because they may come ` +
          'from someone else; put a file in their place',
      );
    const bytes = await bytesOf(target);
    const text =
      bytes === undefined ? undefined : new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    return { path, target, text, within };
  } catch (cause) {
    const isTold = cause instanceof SettingsError || systemCode(cause) !== undefined;
    const why = isTold ? messageOf(cause) : 'it is not text in UTF-8';
    throw new SettingsError('unreadable', `${path} cannot be read: ${why}. It was left as it is.`, { cause });
  }
}

/**
 * Checks that a settings file still has the text that was read.
 * @throws {SettingsError} changed-meanwhile – it has another text
 */
export async function requireUnchanged({ path, target, text, within }: SettingsFile): Promise<void> {
  const now = await readSettingsFile(path, within);
  if (now.text === text && now.target === target) return;
  throw new SettingsError(
    'changed-meanwhile',
    `${path} was changed meanwhile and left as it is. Run the command again.`,
  );
}

/** Creates the folders above a file. Returns those that were missing, outermost first. */
async function makeFolders(path: string): Promise<readonly string[]> {
  const first = await mkdir(dirname(path), { recursive: true });
  const made: string[] = [];
  for (let folder = dirname(path); first !== undefined && folder.length >= first.length; folder = dirname(folder))
    made.unshift(folder);
  return made;
}

/**
 * Replaces a settings file atomically, at the end of its links. The file keeps its mode and, if the
 * system permits, its owner. A new file gets `newMode`. Returns the folders that it created.
 * @throws {SettingsError} changed-meanwhile – the file no longer has the text that was read
 */
export async function writeSettingsFile(
  file: SettingsFile,
  text: string,
  { newMode }: { readonly newMode: number },
): Promise<readonly string[]> {
  const { target } = file;
  await requireUnchanged(file);
  const folders = await makeFolders(target);
  const draft = await draftOf(target);
  try {
    const found = await unlessMissing(stat(target));
    await writeFile(draft, text, { mode: 0o600, flag: 'wx', flush: true });
    if (found !== undefined && (found.uid !== process.getuid?.() || found.gid !== process.getgid?.()))
      // Only the superuser may change a file's owner.
      await chown(draft, found.uid, found.gid).catch((error: unknown) => {
        if (systemCode(error) !== 'EPERM') throw error;
      });
    await chmod(draft, found === undefined ? newMode : found.mode & 0o7777);
    await requireUnchanged(file);
    await rename(draft, target);
    return folders;
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/**
 * Removes a settings file, and those of the given folders that are then empty.
 * @throws {SettingsError} changed-meanwhile – the file no longer has the text that was read
 */
export async function removeSettingsFile(file: SettingsFile, folders: readonly string[]): Promise<void> {
  await requireUnchanged(file);
  await rm(file.target, { force: true });
  // A folder that now has other entries stays.
  for (const folder of [...folders].reverse()) await rmdir(folder).catch(() => undefined);
}
