import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, rm, unlink } from 'node:fs/promises';
import { posix } from 'node:path';
import { hashBytes } from '../../objects/hashes.js';
import type { CanonicalPath, Sha256 } from '../../objects/ids.js';
import { draftOf, removeDeadDrafts } from '../../process/drafts.js';
import { flushFolder, rename } from '../../process/held-files.js';
import { systemCode, unlessMissing } from '../../process/system-error.js';
import { takeFreeName } from '../../process/take-free-name.js';
import { named, SourceError, sourceErrorFrom } from './errors.js';
import { entryPath, irregularKind, notRegularError, openFileInside, openFolderInside } from './open-inside.js';
import { type AllowedRoots, awayError } from './roots.js';
import { inTurn, type LockedFile, withSourceLock } from './source-lock.js';

/** The result of a write. */
export interface WrittenSource {
  readonly path: CanonicalPath;
  /** SHA-256 of the written bytes [§2.4]. */
  readonly fileHash: Sha256;
  readonly size: number;
  /** Time of the last modification, in whole milliseconds. */
  readonly mtimeMs: number;
  /** Whether the write created the file. */
  readonly created: boolean;
}

/** The required state of a path before its change: absent, or bytes with this hash. */
export type Expected = Sha256 | 'absent';

/** Options for changing a file. */
export interface SourceChange {
  /** The path as the agent gave it, for messages. */
  readonly shown?: string;
  /** If true, new files and folders are for this user only; otherwise the umask applies. */
  readonly private?: boolean;
  /** Ends the wait for other changes of the file. */
  readonly signal?: AbortSignal;
}

/** The content of a write and its options. */
export interface SourceWrite extends SourceChange {
  /** Text or bytes, written verbatim. */
  readonly content: string | Uint8Array;
  /**
   * The required state of the path. If the path has another state, the write fails with `exists` or
   * `changed-underneath`. By default any state is accepted.
   */
  readonly expected?: Expected;
}

/** Writes text or bytes verbatim to the locked file, like {@link writeSource}. */
export type WriteLocked = (content: string | Uint8Array, expected?: Expected) => Promise<WrittenSource>;

/** An open folder, known to lie inside the roots. */
interface Folder {
  readonly handle: FileHandle;
  readonly path: string;
}

/**
 * Changes a file by its canonical path while no other Palimpsest code changes it, in this process
 * or another (decision F12). `change` reads the current file and writes with the function that it
 * receives. Missing parent folders are created.
 * @throws {SourceError} busy – another process kept the file for too long; also the errors of
 *   `writeSource`
 */
export function changeSource<T>(
  roots: AllowedRoots,
  options: SourceChange & { readonly path: CanonicalPath },
  change: (write: WriteLocked) => Promise<T>,
): Promise<T> {
  const { path, shown = path, private: isPrivate = false, signal } = options;
  return inTurn(
    path,
    async () => {
      // A file written while its root or mount is absent would be hidden once that returns.
      if (roots.holds(path) && !(await roots.anchorPresent(path))) throw awayError(shown);
      const folder = await openParent({ roots, shown, isPrivate }, path);
      const write: WriteLocked = async (content, expected) => {
        const bytes = bytesOf(content, shown);
        try {
          return await replaceFile({ roots, path, shown, folder, isPrivate }, bytes, expected);
        } catch (error) {
          throw sourceErrorFrom(error, shown);
        }
      };
      return locked({ path, shown, folder }, () => change(write), signal);
    },
    signal,
  );
}

/**
 * Writes a file by its canonical path and creates missing parent folders. The write is atomic. The
 * bytes go to a temporary file in the same folder, reach the disk, and take the name in one step. A
 * reader sees the old file or the new one, and a crash leaves one of them. After a crash, the next
 * write in that folder removes the temporary file. The mode and, if permitted, the owner stay.
 * Other hard links of the old file keep its content. If a folder is replaced by a link during the
 * write, the link is not followed. A link at the name itself is replaced, not followed.
 * @throws {SourceError} unreachable – its root or mount is absent; is-directory, not-regular,
 *   no-permission, outside-roots, io – the file cannot be written there. exists, changed-underneath
 *   – the path has another state than expected; not-text – the text has no exact encoding; busy –
 *   another process kept the file for too long
 */
export async function writeSource(
  roots: AllowedRoots,
  path: CanonicalPath,
  write: SourceWrite,
): Promise<WrittenSource> {
  const { content, expected, ...options } = write;
  bytesOf(content, options.shown ?? path);
  return changeSource(roots, { ...options, path }, (writeLocked) => writeLocked(content, expected));
}

function bytesOf(content: string | Uint8Array, shown: string): Uint8Array {
  if (typeof content !== 'string') return content;
  if (content.isWellFormed()) return Buffer.from(content, 'utf8');
  throw new SourceError(
    'not-text',
    `the text for ${named(shown)} contains a lone surrogate and cannot be written exactly`,
    {
      path: shown,
    },
  );
}

/** Runs `work` under the file's lock and closes the folder. */
async function locked<T>(file: LockedFile, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  try {
    return await withSourceLock(file, work, signal);
  } catch (error) {
    throw sourceErrorFrom(error, file.shown);
  } finally {
    await file.folder.handle.close();
  }
}

/**
 * Removes a file by its canonical path if its bytes have the given hash. If a folder is replaced by
 * a link during the removal, the link is not followed.
 * @throws {SourceError} not-found, changed-underneath – the file has other bytes; outside-roots,
 *   no-permission, io; busy – another process kept the file for too long
 */
export function removeSource(roots: AllowedRoots, path: CanonicalPath, expected: Sha256): Promise<void> {
  return inTurn(path, async () => {
    const parent = posix.dirname(path);
    const { handle } = await openFolderInside(roots, parent, path);
    return locked({ path, shown: path, folder: { handle, path: parent } }, async () => {
      const target = entryPath(handle, parent, posix.basename(path));
      await requireExpected({ roots, path, shown: path }, await writableTarget(target, path), expected);
      await unlink(target);
      await flushFolder(handle);
    });
  });
}

/** The file to write: its path, its agent-visible path, and its open parent folder. */
interface Target {
  readonly roots: AllowedRoots;
  readonly path: CanonicalPath;
  readonly shown: string;
  readonly folder: Folder;
  readonly isPrivate: boolean;
}

/** Opens the parent folder and creates its missing parts inside its root, one folder at a time. */
async function openParent(
  { roots, shown, isPrivate }: Omit<Target, 'path' | 'folder'>,
  path: CanonicalPath,
): Promise<Folder> {
  const root = roots.rootOf(path);
  if (root === undefined || root === path) {
    throw new SourceError('outside-roots', `${named(shown)} is not inside an allowed folder`, { path: shown });
  }
  const parent = posix.dirname(path);
  const existing = await openFolderInside(roots, parent, shown).catch((error: unknown) => {
    if (error instanceof SourceError && error.code === 'not-found') return undefined;
    throw error;
  });
  if (existing !== undefined) return { handle: existing.handle, path: parent };
  const names = parent.slice(root.length).split('/').filter(Boolean);
  let folder: Folder = { handle: (await openFolderInside(roots, root, shown)).handle, path: root };
  for (const name of names) folder = await enter({ roots, shown, folder, isPrivate }, name);
  return folder;
}

/** Opens a subfolder and closes its parent. Creates the subfolder if it is missing. */
async function enter({ roots, shown, folder, isPrivate }: Omit<Target, 'path'>, name: string): Promise<Folder> {
  try {
    await mkdir(entryPath(folder.handle, folder.path, name), isPrivate ? 0o700 : 0o777).catch((error: unknown) => {
      if (systemCode(error) !== 'EEXIST') throw error;
    });
    const path = posix.join(folder.path, name);
    return { handle: (await openFolderInside(roots, path, shown)).handle, path };
  } catch (error) {
    if (error instanceof SourceError && error.code === 'not-regular') {
      throw new SourceError('not-regular', `${named(shown)} cannot be created: a part of its path is not a folder`, {
        path: shown,
        cause: error,
      });
    }
    throw sourceErrorFrom(error, shown);
  } finally {
    await folder.handle.close();
  }
}

async function replaceFile(
  { roots, path, shown, folder, isPrivate }: Target,
  bytes: Uint8Array,
  expected: SourceWrite['expected'],
): Promise<WrittenSource> {
  const target = entryPath(folder.handle, folder.path, posix.basename(path));
  await removeDeadDrafts(entryPath(folder.handle, folder.path, ''), {
    isOurs: (name) => name.startsWith('.palimpsest'),
  });
  const temporary = await draftOf(entryPath(folder.handle, folder.path, '.palimpsest'));
  const before = await writableTarget(target, shown);
  try {
    const mtimeMs = await writeTemporary(temporary, bytes, { before, isPrivate });
    await requireExpected({ roots, path, shown }, before, expected);
    await (expected === 'absent' ? takeFreeName(temporary, target) : rename(temporary, target));
    await flushFolder(folder.handle);
    return { path, fileHash: hashBytes(bytes), size: bytes.length, mtimeMs, created: before === undefined };
  } finally {
    await rm(temporary, { force: true });
  }
}

/**
 * Returns the current stats of the target; `undefined` if it is absent. Rejects a target that no
 * file can replace.
 */
async function writableTarget(target: string, shown: string): Promise<Stats | undefined> {
  const before = await unlessMissing(lstat(target));
  if (before === undefined) return undefined;
  const irregular = irregularKind(before);
  if (irregular !== undefined) throw notRegularError(irregular, shown);
  // Replacing a file needs rights only on its folder. Opening it for writing rejects a
  // write-protected file.
  await (await open(target, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)).close();
  return before;
}

async function writeTemporary(
  temporary: string,
  bytes: Uint8Array,
  { before, isPrivate }: { readonly before: Stats | undefined; readonly isPrivate: boolean },
): Promise<number> {
  const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
  const handle = await open(temporary, flags, before === undefined && !isPrivate ? 0o666 : 0o600);
  try {
    await handle.writeFile(bytes);
    if (before !== undefined) await keepOwnerAndMode(handle, before);
    await handle.sync();
    return Number((await handle.stat({ bigint: true })).mtimeNs / 1_000_000n);
  } finally {
    await handle.close();
  }
}

async function keepOwnerAndMode(handle: FileHandle, before: Stats): Promise<void> {
  const now = await handle.stat();
  if (now.uid !== before.uid || now.gid !== before.gid) {
    // Only the superuser may change a file's owner. For other users, the writer owns the new file.
    await handle.chown(before.uid, before.gid).catch((error: unknown) => {
      if (systemCode(error) !== 'EPERM') throw error;
    });
  }
  await handle.chmod(before.mode & 0o7777);
}

async function requireExpected(
  { roots, path, shown }: Omit<Target, 'folder' | 'isPrivate'>,
  before: Stats | undefined,
  expected: SourceWrite['expected'],
): Promise<void> {
  if (expected === undefined) return;
  if (expected === 'absent') {
    if (before !== undefined) throw new SourceError('exists', `${named(shown)} exists already`, { path: shown });
    return;
  }
  const changed = new SourceError(
    'changed-underneath',
    `${named(shown)} was changed meanwhile; read it again and repeat the edit`,
    {
      path: shown,
    },
  );
  if (before === undefined) throw changed;
  const { handle } = await openFileInside(roots, path, shown);
  try {
    if (hashBytes(await handle.readFile()) !== expected) throw changed;
  } finally {
    await handle.close();
  }
}
