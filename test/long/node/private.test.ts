import { chmod, lstat, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createContextClient } from '../../../src/index.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { until } from '../../support/until.js';

let root: string;
let dataDir: string;
let umask: number;

beforeEach(async () => {
  umask = process.umask(0);
  root = await mkdtemp(join(tmpdir(), 'palimpsest-root-'));
  dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-open-'));
  await writeFile(join(root, 'secret.txt'), 'mine alone', { mode: 0o600 });
  await chmod(dataDir, 0o755);
});
afterEach(async () => {
  process.umask(umask);
  await stopNode(dataDir);
  await rm(dataDir, { recursive: true, force: true });
  await rm(root, { recursive: true, force: true });
});

/** Returns the paths of the data folder and everything in it. */
async function entries(): Promise<readonly string[]> {
  return ['.', ...(await readdir(dataDir, { recursive: true }))];
}

/**
 * Returns the entries that other users may use, and the files that their owner may execute.
 *
 * While the node starts, its socket briefly has the mode 0700: 0777 without the bits of the node's
 * umask. So before `isReady` the owner may execute a socket.
 */
async function openToOthers(isReady = true): Promise<readonly string[]> {
  const found = await Promise.all(
    (await entries()).map(async (path) => {
      // The node removes files meanwhile.
      const stat = await lstat(join(dataDir, path)).catch(() => undefined);
      const most = stat?.isDirectory() || (stat?.isSocket() && !isReady) ? 0o700 : 0o600;
      return stat === undefined || (stat.mode & 0o7777 & ~most) === 0
        ? []
        : [`${path} ${(stat.mode & 0o7777).toString(8)}`];
    }),
  );
  return found.flat();
}

/**
 * Runs one session that reads a file, until it is delivered. Returns the entries that others could
 * use while it was open.
 */
async function useSession(): Promise<readonly string[]> {
  const client = await createContextClient({ dataDir, roots: [root], cwd: root });
  const session = await client.openSession();
  await session.reportToolCall({ name: 'read', args: { path: 'secret.txt' }, content: 'mine alone' });
  const early = await openToOthers(false);
  await session.assemble();
  // A context needs no database, so the node may still be starting.
  await until(
    () => client.listSessions(),
    (all) => all.some(({ id }) => id === session.id),
  );
  const late = await openToOthers();
  await client.close();
  return [...early, ...late, ...(await openToOthers())];
}

describe('a data folder readable by others, with umask 0', () => {
  test('keeps all files of session, node and database private, and makes existing ones private', async () => {
    expect(await useSession()).toEqual([]);
    const names = await entries();
    expect(names).toEqual(
      expect.arrayContaining(['golden', 'index', 'logs/node.log', 'node.json', 'journal', 'sessions']),
    );
    expect(names.filter((name) => /^(golden|index)\/.*\.(log|sst)$/.test(name))).not.toEqual([]);
    expect((await lstat(join(dataDir, 'run/xtdb.sock'))).mode & 0o7777).toBe(0o600);
    await stopNode(dataDir);
    for (const name of await entries()) {
      const path = join(dataDir, name);
      const stat = await lstat(path).catch(() => undefined);
      if (stat !== undefined) await chmod(path, stat.isDirectory() ? 0o755 : 0o644);
    }
    expect(await useSession()).toEqual([]);
  });
});
