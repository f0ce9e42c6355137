import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ContextClient } from '../../src/client/session/context-client.js';
import { localFilesystemId } from '../../src/filesystem/access/filesystem-id.js';
import { nodeStatus } from '../../src/node/node-status.js';
import { stopNode } from '../../src/node/stop-node.js';
import type { NodeAddress } from '../../src/xtdb/address.js';
import { cliPath } from '../support/mcp-clients.js';
import { until } from '../support/until.js';

const run = promisify(execFile);

/** A project to work on: twenty files, and outputs that only the shell gives. */
export async function makeProject(root: string): Promise<void> {
  await mkdir(join(root, 'src'), { recursive: true });
  await mkdir(join(root, 'notes'), { recursive: true });
  for (let i = 1; i <= 20; i++) await writeFile(join(root, 'src', `f${i}.txt`), linesOf(`file ${i}`));
  for (let i = 1; i <= 9; i++) await writeFile(join(root, 'notes', `s${i}.log`), linesOf(`only in the shell ${i}`));
}

export const linesOf = (what: string): string =>
  Array.from({ length: 40 }, (_, i) => `${what}, line ${i + 1} of 40\n`).join('');

/** Runs the built command line program on a data folder. */
export async function palimpsest(dataDir: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [cliPath, ...args, '--data', dataDir], {
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}

/** Returns a session as the command line shows it: its context, then its log. */
export async function shownOf(dataDir: string, session: string): Promise<readonly string[]> {
  return [await palimpsest(dataDir, 'context', session, '--assemble'), await palimpsest(dataDir, 'log', session)];
}

/** Waits until the database has a version of a file that holds a text. */
export function versionNoticed(dataDir: string): (path: string, text: string) => Promise<void> {
  return async (path, text) => {
    await until(
      () => palimpsest(dataDir, 'cat', path),
      (content) => content.includes(text),
    );
  };
}

/** Starts the durable node of a data folder and waits until it answers. */
export async function startNode(dataDir: string): Promise<void> {
  await palimpsest(dataDir, 'node', 'start', '--idle-exit', '600');
}

/**
 * Stops the node of a data folder once no process uses it. A sidecar delivers for a while after its
 * harness has ended.
 */
export async function stopUnusedNode(dataDir: string): Promise<void> {
  await until(
    () => nodeStatus(dataDir),
    (status) => !status.running || status.users === 0,
  );
  await stopNode(dataDir);
}

/** Kills the database itself, as a machine in trouble would. */
export async function killDatabase(dataDir: string): Promise<void> {
  const { jvm } = JSON.parse(await readFile(join(dataDir, 'node.json'), 'utf8')) as {
    readonly jvm: { readonly pid: number } | null;
  };
  if (jvm === null) throw new Error('no database runs');
  process.kill(jvm.pid, 'SIGKILL');
}

/** A client that reads what an agent's process wrote. */
export async function reader(dataDir: string, root: string): Promise<ContextClient> {
  const { address } = JSON.parse(await readFile(join(dataDir, 'node.json'), 'utf8')) as {
    readonly address: NodeAddress | null;
  };
  if (address === null) throw new Error('no node runs');
  return ContextClient.create({ address, roots: [root], cwd: root, filesystemId: await localFilesystemId(dataDir) });
}

/** Returns everything said in a session, in order. */
export async function wordsOf(client: ContextClient, id: string): Promise<readonly string[]> {
  const { state } = await client.openSession({ id });
  return state.turns.flatMap(({ messages }) => messages.map(({ text }) => text).filter((text) => text !== ''));
}
