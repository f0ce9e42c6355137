import { connect } from 'node:net';
import type { AgentFinding } from '../agent.js';
import { type HookAgent, hookState, watchSocket } from './hook-folder.js';

/** Maximum wait for a connection to the watcher's socket, in milliseconds. */
const CONNECT_MS = 1_000;

/** Maximum time of a watcher to start, in milliseconds. The client waits as long. */
const START_MS = 20_000;

/** Returns whether `palimpsest watch` now accepts events of hooks. */
function listensForHooks(dataDir: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(watchSocket(dataDir));
    const end = (listens: boolean): void => {
      socket.destroy();
      resolve(listens);
    };
    socket.setTimeout(CONNECT_MS, () => end(false));
    socket.once('connect', () => end(true));
    socket.once('error', () => end(false));
  });
}

/** Returns the problems of an agent's hooks: they do not reach the watcher, or they never ran. */
export async function hookFindings(title: string, agent: HookAgent, dataDir: string): Promise<readonly AgentFinding[]> {
  const { reached, unreached, starting } = await hookState(dataDir, agent);
  const sinceStart = Number(unreached?.at) - Number(starting);
  // A hook that finds no watcher starts one, so late answers are normal at first. After that, a
  // late answer means that the watcher is too slow.
  const isLate = unreached?.reason === 'late' && !(sinceStart < START_MS);
  if (unreached !== undefined && (isLate || !(await listensForHooks(dataDir)))) {
    const detail = `${title}: ${unreached.reason} at ${unreached.at.toISOString()}, and no event arrived since`;
    return [['agent-hook-unreached', detail]];
  }
  const trust = agent === 'codex' ? ', which runs a hook only after you trust it: start codex and type /hooks' : '';
  return reached === undefined ? [['agent-hook-silent', `${title}${trust}`]] : [];
}
