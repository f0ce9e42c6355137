import { isWithin } from '../filesystem/access/mounts.js';
import { type LockOwner, sessionLockOwners } from '../journal/session-lock.js';
import { type FilesystemId, NO_FILESYSTEM, type SessionId, sessionObjectId } from '../objects/ids.js';
import type { StoreSnapshot } from '../store/store-snapshot.js';

/** Files to replace, and their session. */
export interface FilesToReplace {
  readonly session: string;
  /** This machine's own filesystem. */
  readonly filesystem: FilesystemId;
  readonly paths: readonly string[];
  /** Their ids, as far as known. */
  readonly ids?: readonly string[];
}

/** An open session whose agent works on a file to be replaced. */
export interface OpenOnFiles {
  readonly session: string;
  /** A description of the process that has it open. */
  readonly holder: string;
  /** Undefined for the session itself. */
  readonly path: string | undefined;
}

/** Returns the first file that is in the index of a session. */
async function pathIn(
  present: StoreSnapshot,
  session: SessionId,
  { paths, ids = [] }: FilesToReplace,
): Promise<string | undefined> {
  if (ids.length === 0) return undefined;
  const known = new Set<string>((await present.sets(session)).sets.index);
  return paths[ids.findIndex((id) => known.has(id))];
}

/**
 * Returns the first open session of a data folder that works on files to be replaced. This is the
 * session itself, or a session with such a file in its index or below its folders. Sessions that
 * the database does not have yet are not found. `openPresent` is called only if other sessions are
 * open.
 *
 * @throws {XtdbError}
 */
export async function openOnFiles(
  clientDir: string,
  files: FilesToReplace,
  openPresent: () => Promise<StoreSnapshot>,
): Promise<OpenOnFiles | undefined> {
  const owners = await sessionLockOwners(clientDir);
  const holder = ({ pid, what }: LockOwner): string => `process ${pid} (${what})`;
  const own = owners.find(({ session }) => session === files.session);
  if (own !== undefined) return { session: own.session, holder: holder(own), path: undefined };
  if (owners.length === 0) return undefined;
  const present = await openPresent();
  const keyOf = ({ session }: { readonly session: string }) => sessionObjectId(session as SessionId);
  const heads = await present.heads([files, ...owners].map(keyOf));
  const rootsOf = (one: { readonly session: string }) => heads.get(keyOf(one))?.marks.roots ?? [];
  // A session of a recording has the root `/` of the recording's filesystem, which says nothing of
  // files here.
  const here = new Set([files.filesystem, ...rootsOf(files).map((root) => root.filesystemId)]);
  here.delete(NO_FILESYSTEM);
  for (const owner of owners.filter((one) => heads.has(keyOf(one)))) {
    const roots = rootsOf(owner).filter((root) => here.has(root.filesystemId));
    const below = files.paths.find((path) => roots.some((root) => isWithin(path, root.path)));
    const path = below ?? (await pathIn(present, owner.session as SessionId, files));
    if (path !== undefined) return { session: owner.session, holder: holder(owner), path };
  }
  return undefined;
}
