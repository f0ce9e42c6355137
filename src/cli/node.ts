import { Command, Option } from 'commander';
import type { RemoteNode } from '../host/inspect-nodes.js';
import type { SharedLogFlags } from '../host/shared-log-settings.js';
import type { ShownAddress } from '../node/node-state.js';
import type { NodeStatusReport } from '../node/node-status.js';
import { defined } from '../values/defined.js';
import { dataFlag, jsonFlag, wholeBetween, wholeNumber } from './flags.js';
import { printJson, printLines, printText, reportFailure, tell } from './output.js';

/** Default number of index checkpoints that are kept for each log. */
const CHECKPOINTS_KEPT = 3;

/** Flags of the `node` commands. */
interface NodeFlags extends SharedLogFlags {
  readonly data?: string;
  readonly profile?: string;
  readonly json?: boolean;
  readonly idleExit?: number;
  readonly readyTimeout?: number;
  readonly heap?: number;
  readonly tcp?: boolean;
  readonly lines?: number;
  readonly all?: boolean;
  readonly restore?: string;
  readonly behind?: number;
  readonly keep?: number;
}

/** Returns the settings from the flags and the environment. */
async function wholeSettings(flags: NodeFlags) {
  const { readSettings } = await import('../host/settings.js');
  const settings = readSettings(process.env, flags);
  return { ...settings, node: { ...settings.node, environment: settings.node.environment ?? process.env } };
}

const settingsOf = async (flags: NodeFlags) => (await wholeSettings(flags)).node;

/** Formats an address for people. */
function addressText(address: ShownAddress | null): string {
  if (address === null) return 'no address yet';
  return address.kind === 'unix' ? address.socketPath : address.origin;
}

async function startNode(flags: NodeFlags): Promise<void> {
  const [{ ensureNode }, { shownAddress }] = await Promise.all([
    import('../node/ensure-node.js'),
    import('../node/node-state.js'),
  ]);
  const from = performance.now();
  const node = await ensureNode({
    ...(await settingsOf(flags)),
    ...defined({
      idleExitSeconds: flags.idleExit,
      readyTimeoutMs: flags.readyTimeout === undefined ? undefined : flags.readyTimeout * 1_000,
      heapMegabytes: flags.heap,
      transport: flags.tcp ? ('tcp' as const) : undefined,
      restoreFrom: flags.restore,
    }),
    onProgress: tell,
  });
  await node.release();
  const { pid, started, profile, version } = node;
  const address = shownAddress(node.address);
  const ms = Math.round(performance.now() - from);
  const how = started ? `is ready after ${(ms / 1000).toFixed(1)} s` : 'already runs';
  if (flags.json) printJson({ started, pid, address, profile, version, ms });
  else printLines([`XTDB ${version ?? ''} (${profile}) ${how}: ${addressText(address)}`]);
}

/** Parts of a node's status in words. Undefined if there is nothing to say. */
interface StatusTexts {
  readonly trouble: string | undefined;
  readonly log: string | undefined;
  readonly checkpoint: string | undefined;
}

function describeStatus(status: NodeStatusReport, { trouble, log, checkpoint }: StatusTexts): readonly string[] {
  const troubled = trouble === undefined ? [] : [`writes      ${trouble}`];
  if (!status.running) {
    const failed = status.failure === null ? [] : [`The last start failed: ${status.failure.message}`];
    return [`No node runs on ${status.dataDir}.`, ...failed, ...troubled];
  }
  const health = status.answers ? 'answers' : 'does not answer';
  const behind =
    status.indexing === null ? '' : `, ${status.indexing.indexed} of ${status.indexing.of} transactions indexed`;
  return [
    `XTDB ${status.version ?? '?'} (${status.profile}) on ${status.dataDir}: ${status.phase}${behind}, ${health}`,
    `address     ${addressText(status.address)}`,
    `processes   JVM ${status.pid ?? 'none'}, supervisor ${status.supervised ? status.supervisorPid : 'gone'}`,
    `since       ${status.startedAt}, ${status.restarts} restarts, ${status.users} users`,
    ...(log === undefined ? [] : [`log         ${log}`]),
    ...(checkpoint === undefined ? [] : [`checkpoint  ${checkpoint}`]),
    ...troubled,
  ];
}

async function statusTexts(status: NodeStatusReport): Promise<StatusTexts> {
  const { checkpointText, logText, writeTrouble } = await import('../node/node-status.js');
  return { trouble: writeTrouble(status), log: logText(status), checkpoint: checkpointText(status) };
}

function remoteLines({ address, health, why, version, behind, log, trouble }: RemoteNode): readonly string[] {
  const state =
    health === 'ready' || health === 'lagging'
      ? `XTDB ${version ?? '?'}, ${health}`
      : `${health.toUpperCase()}: ${why}`;
  const lag = behind === null ? '' : `, ${behind} steps of the log behind`;
  const format = log === null ? '' : `, log ${log.name} of format ${log.format ?? '?'}`;
  return [`${address}: ${state}${lag}${format}`, ...(trouble === null ? [] : [`            ${trouble}`])];
}

async function showAll(flags: NodeFlags): Promise<void> {
  const { inspectNodes } = await import('../host/inspect-nodes.js');
  const nodes = await inspectNodes(await wholeSettings(flags));
  const { status, format, formatTrouble } = nodes.own;
  if (flags.json) printJson(nodes);
  else {
    const own = [
      ...describeStatus(status, await statusTexts(status)),
      `format      ${formatTrouble ?? format ?? 'no database yet'}`,
    ];
    printLines([...own, ...nodes.remote.flatMap(remoteLines)]);
  }
  if (!nodes.healthy) process.exitCode = 3;
}

/**
 * Shows the status. The exit code is 0 if the node answers, or with `--all` if every node does.
 * Otherwise it is 3.
 */
async function showStatus(flags: NodeFlags): Promise<void> {
  if (flags.all) return showAll(flags);
  const { hasFailedWrites, nodeStatus } = await import('../node/node-status.js');
  const status = await nodeStatus((await settingsOf(flags)).dataDir, process.env);
  if (flags.json) printJson(status);
  else printLines(describeStatus(status, await statusTexts(status)));
  if (process.env.XTDB_URL)
    tell('XTDB_URL is set: clients use its nodes, not this one. Run: palimpsest node status --all');
  if (!status.running || !status.answers || hasFailedWrites(status)) process.exitCode = 3;
}

async function checkpoint(place: string, flags: NodeFlags): Promise<void> {
  const [{ writeCheckpoint }, { checkpointStore }] = await Promise.all([
    import('../node/write-checkpoint.js'),
    import('../node/checkpoint-store.js'),
  ]);
  const { behind = 0, keep = CHECKPOINTS_KEPT } = flags;
  const done = await writeCheckpoint({
    store: await checkpointStore(place, process.env),
    dataDir: (await settingsOf(flags)).dataDir,
    behind,
    keep,
  });
  if (flags.json) return printJson(done);
  const { path, files, txTime } = done.checkpoint;
  const size = files.reduce((sum, file) => sum + file.size, 0);
  const what = done.written ? 'written' : 'recent enough, so no new one was written';
  const lines = [
    `${path}: ${what}; transactions up to ${txTime}, ${files.length} files of ${size} bytes`,
    ...done.removed.map((old) => `${old}: removed`),
  ];
  printLines(lines);
}

/** Stops the node. If it does not run, that is not an error. */
async function stopRunning(flags: NodeFlags): Promise<void> {
  const { stopNode } = await import('../node/stop-node.js');
  const { dataDir } = await settingsOf(flags);
  const stopped = await stopNode(dataDir);
  if (flags.json) printJson({ stopped });
  else printLines([stopped ? 'The node has stopped.' : `No node runs on ${dataDir}.`]);
}

async function showLogs(flags: NodeFlags): Promise<void> {
  const { nodeLogs } = await import('../node/node-status.js');
  const { dataDir } = await settingsOf(flags);
  const logs = await nodeLogs(dataDir, flags.lines);
  if (flags.json) printJson({ path: logs?.path ?? null, text: logs?.text ?? null });
  else if (logs?.text === undefined) tell(`No node has run on ${dataDir} yet.`);
  else printText(logs.text);
}

/**
 * Continues an interrupted erasure in a separate process, because the erasure restarts the node.
 */
async function resumeErasure(dataDir: string): Promise<void> {
  const [{ existsSync }, { spawn }, { join }, { PENDING_ORDER }] = await Promise.all([
    import('node:fs'),
    import('node:child_process'),
    import('node:path'),
    import('../node/erasure-sign.js'),
  ]);
  if (!existsSync(join(dataDir, PENDING_ORDER))) return;
  const args = [process.argv[1] ?? '', 'erase', '--resume', '--data', dataDir];
  spawn(process.execPath, args, { detached: true, stdio: 'ignore', windowsHide: true })
    .on('error', () => undefined)
    .unref();
}

/**
 * The supervisor, which `node start` starts in the background. SIGTERM and SIGINT stop the node.
 * Closing the terminal does not.
 */
async function supervise(flags: { readonly plan: string }): Promise<void> {
  const [{ parseLaunchPlan }, { makeArchiveApart }, { superviseNode }, { watchJournals }] = await Promise.all([
    import('../node/launch.js'),
    import('../node/packaged-archive.js'),
    import('../node/supervise.js'),
    import('./watch-journals.js'),
  ]);
  // Makes all new files private to the user, including those of the JVM and RocksDB.
  process.umask(0o077);
  const stop = new AbortController();
  process.on('SIGTERM', () => stop.abort());
  process.on('SIGINT', () => stop.abort());
  process.on('SIGHUP', () => undefined);
  const plan = parseLaunchPlan(flags.plan);
  // A node in memory has no journals.
  if (plan.profile !== 'memory') void watchJournals(plan.dataDir, stop.signal);
  const onReady = (): void => {
    void resumeErasure(plan.dataDir);
    if (plan.missing !== null) makeArchiveApart(plan.missing, process.argv[1] ?? '');
  };
  process.exitCode = await superviseNode({ plan, env: process.env, stop: stop.signal, onReady });
  stop.abort();
}

/** `palimpsest node …`: starts, shows and stops the database node of a data folder. */
export function nodeCommand(): Command {
  const node = new Command('node').description('start, inspect and stop the database node of a data folder');
  const add = (name: string, description: string, work: (flags: NodeFlags) => Promise<void>): Command =>
    node
      .command(name)
      .description(description)
      .addOption(dataFlag())
      .action((flags: NodeFlags) => reportFailure(flags, () => work(flags)));
  add('start', 'start the node in the background, or find the running one, and wait until it answers', startNode)
    .addOption(
      new Option(
        '--profile <name>',
        'memory (loses everything when it stops), rocksdb (in the data folder; the default), postgres or kafka ' +
          '(shared ' +
          'by several nodes); a data folder keeps its first profile',
      ),
    )
    .addOption(
      new Option(
        '--log <where>',
        'the shared log: postgresql://USER@HOST/DATABASE, or with kafka HOST:PORT,… (PALIMPSEST_LOG)',
      ),
    )
    .addOption(
      new Option(
        '--documents <url>',
        'with kafka: postgresql://USER@HOST/DATABASE for the documents (PALIMPSEST_DOCUMENTS)',
      ),
    )
    .addOption(
      new Option(
        '--password-file <file>',
        "the database's password (PALIMPSEST_DATABASE_PASSWORD_FILE; or PALIMPSEST_DATABASE_PASSWORD itself)",
      ),
    )
    .addOption(new Option('--topic <name>', 'with kafka: topic of the log (PALIMPSEST_TOPIC; default: palimpsest-log)'))
    .addOption(
      new Option(
        '--replication <count>',
        'with kafka: number of replicas of the topic (PALIMPSEST_REPLICATION; default: 3)',
      ).argParser(wholeBetween(1, 32_767)),
    )
    .addOption(new Option('--create-topic', 'with kafka: create the topic if it does not exist'))
    .addOption(
      new Option(
        '--kafka-properties <file>',
        'with kafka: client settings for TLS and SASL (PALIMPSEST_KAFKA_PROPERTIES)',
      ),
    )
    .addOption(
      new Option(
        '--idle-exit <seconds>',
        'stop after this long without a request; 0 means never (default: 1800)',
      ).argParser(wholeNumber),
    )
    .addOption(
      new Option('--ready-timeout <seconds>', 'maximum wait for the node to answer (default: 60)').argParser(
        wholeNumber,
      ),
    )
    .addOption(new Option('--heap <megabytes>', 'maximum heap size (default: 1024)').argParser(wholeNumber))
    .addOption(
      new Option(
        '--restore <place>',
        'if the data folder has no index, copy it from this checkpoint, or from the newest in this folder or ' +
          's3://BUCKET/PREFIX (see node checkpoint)',
      ),
    )
    .addOption(new Option('--tcp', 'listen on a port of 127.0.0.1 with a bearer token instead of a unix socket'))
    .addOption(jsonFlag());
  add('status', 'show whether the node runs and answers; exit code 3 otherwise', showStatus)
    .addOption(new Option('--all', "also show every node of XTDB_URL: state, distance from the log's end, formats"))
    .addOption(jsonFlag());
  node
    .command('checkpoint <place>')
    .description(
      'copy the index of a shared log to a checkpoint folder or s3://BUCKET/PREFIX, for new nodes on the ' +
        'same log (node start --restore); AWS_ variables set endpoint, region and credentials; if several hosts run ' +
        'it at once, only one writes',
    )
    .addOption(dataFlag())
    .addOption(
      new Option(
        '--behind <steps>',
        'skip if the newest checkpoint is at most this many log steps behind (default: 0)',
      ).argParser(wholeNumber),
    )
    .addOption(
      new Option(
        '--keep <count>',
        `number of checkpoints to keep of this log (default: ${CHECKPOINTS_KEPT})`,
      ).argParser(wholeBetween(1, 1_000)),
    )
    .addOption(jsonFlag())
    .action((place: string, flags: NodeFlags) => reportFailure(flags, () => checkpoint(place, flags)));
  add('stop', 'stop the node', stopRunning).addOption(jsonFlag());
  add('logs', "print the last lines of the node's log", showLogs)
    .addOption(new Option('--lines <count>', 'how many').argParser(wholeNumber).default(100))
    .addOption(jsonFlag());
  node
    .command('build', { hidden: true })
    .requiredOption('--plan <json>')
    .action((flags: { readonly plan: string }) =>
      reportFailure({}, async () => (await import('../node/build-apart.js')).buildForParent(flags.plan)),
    );
  node
    .command('supervise', { hidden: true })
    .requiredOption('--plan <json>')
    .action((flags: { readonly plan: string }) => reportFailure({}, () => supervise(flags)));
  return node;
}
