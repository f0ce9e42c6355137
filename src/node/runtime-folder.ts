import { createHash } from 'node:crypto';
import { lstat, mkdir } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { NodeError } from './errors.js';

/** Longest path that a unix socket takes everywhere: `sun_path` has 104 bytes on macOS, 108 on Linux, a final NUL included. */
export const MAX_SOCKET_PATH_BYTES = 100;

const SOCKET_NAME = 'xtdb.sock';

/**
 * The folder for a node's socket: `run` in the data folder, or, where that path is too long for a socket, one named by a hash of it under
 * `runtimeDir` (the user's XDG runtime folder), or under the system's temporary folder where that one is too long or missing.
 */
export function runtimeFolderFor(
  dataDir: string,
  roots: { readonly runtimeDir?: string | undefined; readonly tmpDir: string; readonly user: string },
): string {
  const fits = (dir: string): boolean => Buffer.byteLength(join(dir, SOCKET_NAME)) <= MAX_SOCKET_PATH_BYTES;
  const near = join(dataDir, 'run');
  if (fits(near)) return near;
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 16);
  const own = roots.runtimeDir ? join(roots.runtimeDir, 'palimpsest', name) : undefined;
  return own !== undefined && fits(own) ? own : join(roots.tmpDir, `palimpsest-${roots.user}-${name}`);
}

/** The socket in a runtime folder. */
export function socketIn(runtimeFolder: string): string {
  return join(runtimeFolder, SOCKET_NAME);
}

/**
 * Makes the runtime folder of a data folder, open to its owner alone, and returns its path.
 * Throws NodeError `data-unwritable` when somebody else owns it or could look inside: a shared temporary folder invites such traps.
 */
export async function makeRuntimeFolder(dataDir: string, runtimeDir: string | undefined): Promise<string> {
  const { uid, username } = userInfo();
  const dir = runtimeFolderFor(dataDir, { runtimeDir, tmpDir: tmpdir(), user: uid >= 0 ? String(uid) : username });
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const stat = await lstat(dir);
    const isOurs = stat.isDirectory() && (uid < 0 || (stat.uid === uid && (stat.mode & 0o077) === 0));
    if (isOurs) return dir;
  } catch (cause) {
    throw new NodeError(
      'data-unwritable',
      `The folder for the node's socket, ${dir}, cannot be made (${String(cause)}). Give yourself access to it.`,
      {
        cause,
      },
    );
  }
  throw new NodeError(
    'data-unwritable',
    `${dir}, the folder for the node's socket, must belong to you alone (mode 0700). Remove it, then try again.`,
  );
}
