import { createHash } from 'node:crypto';
import { lstat, mkdir } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { NodeError } from './errors.js';

/**
 * Maximum length of a Unix socket's path on all systems. `sun_path` has 104 bytes on macOS and 108
 * on Linux, including a final NUL.
 */
export const MAX_SOCKET_PATH_BYTES = 100;

const SOCKET_NAME = 'xtdb.sock';

/**
 * Returns the folder for a node's socket: `run` in the data folder. If that path is too long for a
 * socket, returns a folder named by its hash in `runtimeDir` (the user's XDG runtime folder). If
 * that path is also too long, or `runtimeDir` is missing, the folder is in the system's temporary
 * folder.
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

/** Returns the path of the socket in a runtime folder. */
export function socketIn(runtimeFolder: string): string {
  return join(runtimeFolder, SOCKET_NAME);
}

/** Returns the runtime folder of a data folder for this user; it need not exist. */
export function ownRuntimeFolder(dataDir: string, runtimeDir: string | undefined): string {
  const { uid, username } = userInfo();
  return runtimeFolderFor(dataDir, { runtimeDir, tmpDir: tmpdir(), user: uid >= 0 ? String(uid) : username });
}

/**
 * Creates the runtime folder of a data folder for its owner only, and returns its path.
 * @throws {NodeError} `data-unwritable` if another user owns it or has access to it, which is
 * possible in a shared temporary folder
 */
export async function makeRuntimeFolder(dataDir: string, runtimeDir: string | undefined): Promise<string> {
  const { uid } = userInfo();
  const dir = ownRuntimeFolder(dataDir, runtimeDir);
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
