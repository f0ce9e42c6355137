import { ensureNode } from '../node/ensure-node.js';
import { type NodeStatusReport, nodeLogs, nodeStatus } from '../node/node-status.js';
import { stopNode } from '../node/stop-node.js';
import { defined } from '../values/defined.js';
import type { NodeFlags } from './node-flags.js';
import { reportFailure } from './report-failure.js';
import { nodeOptions, readSettings } from './settings.js';

type Address = Extract<NodeStatusReport, { readonly running: true }>['address'];

/** An address for people: without its token. */
function shownAddress(address: Address): string {
  if (address === null) return 'no address yet';
  return address.kind === 'unix' ? address.socketPath : address.origin;
}

/** `node start` */
export async function startAction(flags: NodeFlags): Promise<void> {
  await reportFailure(flags, async () => {
    const settings = readSettings(process.env, flags);
    const from = performance.now();
    const node = await ensureNode({
      ...nodeOptions(settings),
      ...defined({ idleExitSeconds: flags.idleExit }),
      ...(flags.readyTimeout === undefined ? {} : { readyTimeoutMs: flags.readyTimeout * 1000 }),
      ...defined({ heapMegabytes: flags.heap }),
      ...(flags.tcp ? { transport: 'tcp' as const } : {}),
      onProgress: (message) => console.error(message),
    });
    await node.release();
    const { address, pid, started, profile, version } = node;
    const ms = Math.round(performance.now() - from);
    if (flags.json) console.log(JSON.stringify({ started, pid, address, profile, version, ms }));
    else
      console.log(
        `XTDB ${version ?? ''} (${profile}) ${started ? `is ready after ${(ms / 1000).toFixed(1)} s` : 'already runs'}: ${shownAddress(address)}`,
      );
  });
}

function describeStatus(status: NodeStatusReport): string {
  if (!status.running)
    return `No node runs on ${status.dataDir}.${status.failure === null ? '' : `\nThe last start failed: ${status.failure.message}`}`;
  const health = status.ingesterFailed ? 'its indexer has FAILED' : status.answers ? 'answers' : 'does not answer';
  const lines = [
    `XTDB ${status.version ?? '?'} (${status.profile}) on ${status.dataDir}: ${status.phase}, ${health}`,
    `address     ${shownAddress(status.address)}`,
    `processes   JVM ${status.pid ?? 'none'}, supervisor ${status.supervised ? status.supervisorPid : 'gone'}`,
    `since       ${status.startedAt}, ${status.restarts} restarts, ${status.users} users`,
  ];
  return lines.join('\n');
}

/** `node status`: exit code 0 when the node answers, 3 otherwise. */
export async function statusAction(flags: NodeFlags): Promise<void> {
  await reportFailure(flags, async () => {
    const status = await nodeStatus(readSettings(process.env, flags).dataDir);
    console.log(flags.json ? JSON.stringify(status) : describeStatus(status));
    if (!status.running || !status.answers || status.ingesterFailed) process.exitCode = 3;
  });
}

/** `node stop`: a node that does not run is no failure. */
export async function stopAction(flags: NodeFlags): Promise<void> {
  await reportFailure(flags, async () => {
    const { dataDir } = readSettings(process.env, flags);
    const stopped = await stopNode(dataDir);
    if (flags.json) console.log(JSON.stringify({ stopped }));
    else console.log(stopped ? 'The node has stopped.' : `No node runs on ${dataDir}.`);
  });
}

/** `node logs` */
export async function logsAction(flags: NodeFlags): Promise<void> {
  await reportFailure(flags, async () => {
    const { dataDir } = readSettings(process.env, flags);
    const logs = await nodeLogs(dataDir, flags.lines);
    if (flags.json) console.log(JSON.stringify({ path: logs?.path ?? null, text: logs?.text ?? null }));
    else if (logs?.text === undefined) console.error(`No node has run on ${dataDir} yet.`);
    else console.log(logs.text);
  });
}
