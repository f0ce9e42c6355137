import { pollUntil } from '../process/within-limit.js';
import type { DataFolder } from './data-folder.js';
import { NodeError } from './errors.js';
import { type NodeState, readLiveness } from './node-state.js';
import { probeNode } from './node-status.js';
import { failureOf, type RunningNode, readyTimeout, runningNode, type StartOptions } from './start-node.js';
import { endProcess } from './stop-node.js';
import { TIME_LIMITS } from './time-limits.js';

function checkProfile(folder: DataFolder, state: NodeState, options: StartOptions): void {
  if (state.profile === options.profile) return;
  throw new NodeError(
    'profile-mismatch',
    `A node of profile ${state.profile} runs on ${folder.dir}, and profile ${options.profile} was asked for. Stop it with: palimpsest node stop, or name another folder with --data.`,
  );
}

async function checkIngester(folder: DataFolder, node: RunningNode): Promise<RunningNode | undefined> {
  const answer = await probeNode(node.address, TIME_LIMITS.probeMs);
  if (answer?.ingesterFailed === true) {
    throw new NodeError(
      'ingester-failed',
      `The node of ${folder.dir} answers, but its indexer has failed: it would serve stale data. Restart it (palimpsest node stop, then start); if it fails again, see palimpsest node logs.`,
    );
  }
  return answer === undefined ? undefined : node;
}

/**
 * The node that runs on a data folder, once it answers; undefined when none does.
 * Waits for one that is starting or coming back, and ends an orphan that does not answer. Throws NodeError `profile-mismatch`, `ingester-failed`, `ready-timeout`, `aborted` or the failure of a start that was waited for.
 */
export async function findNode(folder: DataFolder, options: StartOptions): Promise<RunningNode | undefined> {
  const limitMs = options.readyTimeoutMs ?? TIME_LIMITS.readyMs;
  let waited = false;
  const found = await pollUntil<RunningNode | 'none'>(
    async () => {
      const liveness = await readLiveness(folder);
      if (liveness.kind === 'none') {
        if (waited && liveness.state?.phase === 'failed') throw failureOf(liveness.state);
        return 'none';
      }
      // One that is about to go is waited for and then replaced.
      if (liveness.state.phase !== 'stopping') checkProfile(folder, liveness.state, options);
      waited = true;
      const candidate = runningNode(liveness.state);
      const node = candidate === undefined ? undefined : await checkIngester(folder, candidate);
      if (node !== undefined) return node;
      if (liveness.kind === 'supervised') return undefined;
      if (liveness.state.jvm !== null) await endProcess(liveness.state.jvm);
      return 'none';
    },
    { limitMs, signal: options.signal },
  );
  if (found === undefined) throw readyTimeout(folder, limitMs);
  return found === 'none' ? undefined : found;
}
