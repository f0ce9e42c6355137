import { rm } from 'node:fs/promises';
import { isAlive, type ProcessIdentity, signalProcess } from '../process/process-identity.js';
import { pollUntil } from '../process/within-limit.js';
import { type DataFolder, findDataFolder } from './data-folder.js';
import { NodeError } from './errors.js';
import { type NodeState, readLiveness, removeState } from './node-state.js';
import { askNode } from './probe-node.js';
import { TIME_LIMITS } from './time-limits.js';

/** Ends exactly this process: first SIGTERM, then SIGKILL. Returns false if it survives both. */
export async function endProcess(identity: ProcessIdentity): Promise<boolean> {
  const gone = async (): Promise<true | undefined> => ((await isAlive(identity)) ? undefined : true);
  await signalProcess(identity, 'SIGTERM');
  if (await pollUntil(gone, { limitMs: TIME_LIMITS.processEndMs })) return true;
  await signalProcess(identity, 'SIGKILL');
  return (await pollUntil(gone, { limitMs: TIME_LIMITS.killedMs })) === true;
}

/**
 * Requests a node on TCP to close and waits for that. On Windows, a signal cannot do this: any
 * signal ends a process at once, like a crash.
 */
async function askToEnd({ address, supervisor, jvm }: NodeState): Promise<void> {
  if (address?.kind !== 'tcp') return;
  const asked = { method: 'POST', path: '/_xtdb/stop', limitMs: TIME_LIMITS.probeMs } as const;
  if ((await askNode(address, asked))?.status !== 202) return;
  const gone = async (): Promise<true | undefined> =>
    (await isAlive(supervisor)) || (jvm !== null && (await isAlive(jvm))) ? undefined : true;
  await pollUntil(gone, { limitMs: TIME_LIMITS.processEndMs });
}

/**
 * Stops the node of an existing data folder and removes files that a crash left. Returns true if a
 * node ran.
 */
export async function stopNodeOf(folder: DataFolder): Promise<boolean> {
  const { kind, state } = await readLiveness(folder);
  if (state === undefined) return false;
  const end = async (identity: ProcessIdentity): Promise<void> => {
    if (await endProcess(identity)) return;
    throw new NodeError(
      'stop-failed',
      `Process ${identity.pid} of the node of ${folder.dir} does not end. End it manually: kill -9 ${identity.pid}`,
    );
  };
  if (kind !== 'none') await askToEnd(state);
  // The supervisor ends first, because it would restart the JVM.
  if (kind === 'supervised') await end(state.supervisor);
  if (state.jvm !== null) await end(state.jvm);
  await removeState(folder.stateFile, state.supervisor);
  if (state.address?.kind === 'unix' && kind !== 'supervised') await rm(state.address.socketPath, { force: true });
  return kind !== 'none';
}

/**
 * Stops the node of a data folder; returns false if none ran.
 * @throws {NodeError} `stop-failed`
 *
 * @example
 * ```ts
 * const wasRunning = await stopNode('.palimpsest');
 * ```
 */
export async function stopNode(dataDir: string): Promise<boolean> {
  const folder = await findDataFolder(dataDir);
  return folder === undefined ? false : stopNodeOf(folder);
}
