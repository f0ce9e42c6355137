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

const rootsOf = async (present: StoreSnapshot, session: string) => {
  const key = sessionObjectId(session as SessionId);
  return (await present.heads([key])).get(key)?.marks.roots ?? [];
};

/**
 * Returns the first file that a session works on. A session of a recording has the root `/` of the
 * recording's filesystem, which says nothing of files here.
 */
async function pathIn(
  present: StoreSnapshot,
  session: SessionId,
  { paths, filesystem, session: restored, ids = [] }: FilesToReplace,
): Promise<string | undefined> {
  const here = new Set([filesystem, ...(await rootsOf(present, restored)).map((root) => root.filesystemId)]);
  here.delete(NO_FILESYSTEM);
  const roots = (await rootsOf(present, session)).filter((root) => here.has(root.filesystemId));
  const below = paths.find((path) => roots.some((root) => isWithin(path, root.path)));
  if (below !== undefined || ids.length === 0) return below;
  const { index } = (await present.sets(session)).sets;
  const known = new Set<string>(index);
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
  for (const owner of owners) {
    const path = await pathIn(present, owner.session as SessionId, files);
    if (path !== undefined) return { session: owner.session, holder: holder(owner), path };
  }
  return undefined;
}
