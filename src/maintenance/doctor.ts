import { Command, Option } from 'commander';
import type { ExaminedAgent } from '../agents/examine-agents.js';
import { dataFlag, jsonFlag } from '../cli/flags.js';
import { printJson, printLines, reportFailure } from '../cli/output.js';
import type { StepsInFork } from '../client/recovery/rescue-fork.js';
import type { Settings } from '../host/settings.js';
import type { WatchStatus } from '../host/watch-report.js';
import { placesText } from '../journal/errors.js';
import type { InspectedJournal, JournalState } from '../journal/journals.js';
import type { FoundJava } from '../node/choose-runtime.js';
import type { NodeError } from '../node/errors.js';
import type { NodeStatusReport } from '../node/node-status.js';
import type { LoopTrouble, TrackerReport } from '../process/process-reports.js';
import { defined } from '../values/defined.js';
import type { ProbedNode } from '../xtdb/node-list.js';
import type { Finding } from './findings.js';
import type { InspectedFolder } from './inspect-data-folder.js';

/** Flags of `palimpsest doctor`. */
interface DoctorFlags {
  readonly data?: string;
  readonly json?: boolean;
  /** False with `--no-agents`. */
  readonly agents: boolean;
}

/** Describes where a journal is damaged and which records are lost. */
export function damageText({ damage, loss }: Pick<InspectedJournal, 'damage' | 'loss'>): string {
  const records = loss.records.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`));
  const lost = [
    ...(records.length === 0 ? [] : [`records ${records.join(', ')} cannot be read`]),
    ...(loss.isUncounted ? ['other records may have been lost there'] : []),
  ];
  return `${placesText(damage)}: ${lost.length === 0 ? 'no acknowledged record is missing' : lost.join(', ')}`;
}

const STATE_LINES: Readonly<Record<JournalState, (journal: InspectedJournal) => string | undefined>> = {
  sound: ({ holder, pending }) =>
    holder === undefined && pending > 0
      ? 'its process has ended; a running node delivers it, otherwise the next client or question on this data ' +
        'folder does'
      : undefined,
  torn: () => 'its last write is incomplete; every acknowledged record is intact and will be delivered',
  corrupt: (journal) =>
    `DAMAGED: ${damageText(journal)}. A running node delivers the readable records, otherwise the next client or ` +
    'question on this data folder does; see palimpsest journal salvage',
  'newer-format': ({ reason }) => `written by a later version: ${reason}`,
  unreadable: ({ reason }) => `cannot be read: ${reason}`,
};

function nodeLines(
  node: NodeStatusReport,
  [trouble, log]: readonly [trouble: string | undefined, log: string | undefined],
): readonly string[] {
  const troubled = trouble === undefined ? [] : [`          ${trouble}`];
  if (!node.running) {
    return [
      `node      not running${node.failure === null ? '' : `; the last start failed: ${node.failure.message}`}`,
      ...troubled,
    ];
  }
  const state = node.answers ? 'answers' : 'does not answer';
  const watched = node.supervised ? '' : '; NOT SUPERVISED, it will not restart after a crash';
  return [
    `node      ${node.profile}, ${node.phase}, ${state}${watched} (${node.users} ` +
      `${node.users === 1 ? 'process uses' : 'processes use'} it, ${node.restarts} restarts)`,
    ...(log === undefined ? [] : [`log       ${log}`]),
    ...troubled,
  ];
}

function journalLines(journals: readonly InspectedJournal[], now: number): readonly string[] {
  if (journals.length === 0) return ['journal   no record waits for the database'];
  return journals.flatMap((journal) => {
    const { owner, holder, pending, pendingBytes, oldestAt, state } = journal;
    const who = holder === undefined ? 'of a process that ended' : `of process ${holder.pid}`;
    const age = oldestAt === undefined ? '' : `, the oldest for ${Math.max(0, Math.round((now - oldestAt) / 1_000))} s`;
    const line = STATE_LINES[state](journal);
    return [
      `journal   ${owner} ${who}: ${pending} steps wait (${pendingBytes} bytes${age})`,
      ...(line === undefined ? [] : [`          ${line}`]),
    ];
  });
}

function trackerLines(reports: readonly TrackerReport[]): readonly string[] {
  return reports.flatMap(({ pid, what, attached, orphaned, resuming, sweptFolders, unreadable }) => [
    `tracker   process ${pid} (${what}): ${attached} sources attached, ${orphaned} ` +
      `orphaned${resuming === 0 ? '' : `, ${resuming} sessions still resuming`}`,
    ...unreadable.map(
      ({ path, reason }) => `          ${JSON.stringify(path)} cannot be read: ${reason}; its last version stays`,
    ),
    ...(sweptFolders === 0
      ? []
      : [
          `          ${sweptFolders} folders are only polled; raise fs.inotify.max_user_watches or the limit of ` +
            'open files',
        ]),
  ]);
}

function asideLines(aside: InspectedFolder['aside']): readonly string[] {
  return aside.flatMap(({ path, ...found }) => [
    `damaged   ${path} was kept after its readable records were delivered`,
    `          ${damageText(found)}. See palimpsest journal salvage`,
  ]);
}

function folderLines({ journals, aside, sessions, trackers }: InspectedFolder, now: number): readonly string[] {
  const open = sessions.map(
    ({ session, pid, what, since }) => `session   ${session} is open in process ${pid} (${what}) since ${since}`,
  );
  return [...journalLines(journals, now), ...asideLines(aside), ...open, ...trackerLines(trackers)];
}

function loopLines(troubles: readonly LoopTrouble[]): readonly string[] {
  return troubles.map(
    ({ what, pid, isRunning, session, passedThrough, at, reason }) =>
      `loop      ${what}, process ${pid}${isRunning ? '' : ', which has ended'}: ${passedThrough} model calls ` +
      'used the ' +
      `harness's own context, the last at ${at} in session ${session}: ${reason}`,
  );
}

/** One line on the process that records agents, and one for each failure that it reported. */
function watchLines({ pid, since, followed, failed, notices }: WatchStatus): readonly string[] {
  if (since === undefined) return [];
  const records = `records ${followed.length} ${followed.length === 1 ? 'transcript' : 'transcripts'}`;
  const [last] = notices.slice(-1);
  const state =
    pid === undefined ? 'not running; palimpsest watch --background starts it' : `process ${pid} ${records}`;
  return [
    `watch     ${state}`,
    ...failed.map(({ path, reason }) => `          ${JSON.stringify(path)} is not recorded: ${reason}`),
    ...(last === undefined ? [] : [`          ${new Date(last.at).toISOString()} ${JSON.stringify(last.line)}`]),
  ];
}

/** Returns whether a finding does not stop recording: it needs no repair, or concerns an agent. */
const isElsewhere = ({ weight, code }: Finding): boolean => weight !== 'repair' || code.startsWith('agent-');

/** Formats each finding: its meaning, the remedy, and the runbook section. */
function findingLines(findings: readonly Finding[]): readonly string[] {
  return findings.flatMap(({ code, weight, means, next, detail }) => [
    `${weight === 'repair' ? 'REPAIR   ' : 'look     '} ${code}: ${means}`,
    ...(detail === undefined ? [] : [`          ${detail}`]),
    `          To do: ${next} (docs/runbook.md#${code})`,
  ]);
}

/**
 * Asks the status of every node that clients use in this environment. Returns an empty list if they
 * use the data folder's node.
 */
async function askNodes({
  nodeUrl,
  nodeToken,
}: Pick<Settings, 'nodeUrl' | 'nodeToken'>): Promise<readonly ProbedNode[]> {
  if (nodeUrl === undefined) return [];
  const [{ probeHealth }, { parseNodeUrls }] = await Promise.all([
    import('../xtdb/node-list.js'),
    import('../xtdb/address.js'),
  ]);
  return Promise.all(
    parseNodeUrls(nodeUrl).map((address) => probeHealth({ ...address, ...defined({ token: nodeToken?.() }) })),
  );
}

/**
 * Finds acknowledged steps that only a fork has (decision F6). Returns undefined if the database
 * does not answer.
 */
async function forksIn(settings: Settings): Promise<readonly StepsInFork[] | undefined> {
  const [{ stepsInForks }, { openStore }] = await Promise.all([
    import('../client/recovery/rescue-fork.js'),
    import('../host/open-store.js'),
  ]);
  try {
    const { store, close } = await openStore(settings, () => undefined);
    try {
      return await stepsInForks(await store.latest());
    } finally {
      await close();
    }
  } catch {
    // The findings on the node give the reason.
    return undefined;
  }
}

/** Returns the Java that starting the node would use, or the reason why there is none. */
async function lookForJava({ javaHome }: Settings['node']): Promise<FoundJava | NodeError> {
  const [{ findNodeJava }, { packageFiles }, { NodeError }] = await Promise.all([
    import('../node/choose-runtime.js'),
    import('../node/package-files.js'),
    import('../node/errors.js'),
  ]);
  try {
    return await findNodeJava(packageFiles(), { javaHome });
  } catch (error) {
    if (error instanceof NodeError) return error;
    throw error;
  }
}

function javaLine(found: FoundJava | NodeError): string {
  if (found instanceof Error) return `java      NOT FOUND: ${found.message}`;
  const { java, packaged } = found;
  return `java      ${java.major} ${packaged === undefined ? '' : `of ${packaged.package} `}at ${java.command}`;
}

/** Examines the agents on this machine for this folder, and asks those that are set up. */
async function askAgents(
  { agents }: DoctorFlags,
  { packageFolder, dataDir }: { readonly packageFolder: string; readonly dataDir: string },
): Promise<readonly ExaminedAgent[]> {
  if (!agents) return [];
  const [{ homedir }, { examineAgents }, { dataFolder }] = await Promise.all([
    import('node:os'),
    import('../agents/examine-agents.js'),
    import('../host/environment.js'),
  ]);
  const at = { env: process.env, home: homedir(), platform: process.platform, cwd: process.cwd() };
  return examineAgents({ at, packageFolder, data: { dataDir, isDefault: dataDir === dataFolder({}) } });
}

/** One line per agent: its settings, whether it reaches Palimpsest, and whether recording works. */
function agentLines(
  agents: readonly ExaminedAgent[],
  { java, healthy }: { readonly java: FoundJava | NodeError | undefined; readonly healthy: boolean },
): readonly string[] {
  const runtime = java === undefined ? 'the node runs' : java instanceof Error ? 'no Java' : `Java ${java.java.major}`;
  return agents.map(({ text, isSetUp }) =>
    isSetUp
      ? `agent     ${text}; ${runtime}; ${healthy ? 'recording works' : 'recording needs a repair, see below'}`
      : `agent     ${text}`,
  );
}

async function examine(flags: DoctorFlags, packageFolder: string): Promise<void> {
  const [{ findingsOf }, { inspectDataFolder }, { logText, writeTrouble }, { readSettings }] = await Promise.all([
    import('./findings.js'),
    import('./inspect-data-folder.js'),
    import('../node/node-status.js'),
    import('../host/settings.js'),
  ]);
  const settings = readSettings(process.env, flags);
  const { dataDir } = settings.node;
  const { watchStatus } = await import('../host/watch-report.js');
  const [seen, asked, agents, watch, looked] = await Promise.all([
    inspectDataFolder(dataDir, process.env),
    askNodes(settings),
    askAgents(flags, { packageFolder, dataDir }),
    watchStatus(dataDir),
    // With XTDB_URL, clients never start the folder's own node.
    settings.nodeUrl === undefined ? lookForJava(settings.node) : undefined,
  ]);
  // Doctor does not start a stopped node.
  const answers =
    asked.length === 0 ? seen.node.running && seen.node.answers : asked.some(({ health }) => health === 'ready');
  const inspected = { ...seen, ...defined({ forks: answers ? await forksIn(settings) : undefined }) };
  const now = Date.now();
  // A running node already has a Java.
  const java = inspected.node.running && looked instanceof Error ? undefined : looked;
  const findings = findingsOf(inspected, now, {
    asked,
    java: java instanceof Error ? java : undefined,
    agents: agents.flatMap(({ findings: found }) => found),
  });
  const { node, own, remote, loops, gateways, formatTrouble } = inspected;
  const healthy = findings.every(({ weight }) => weight !== 'repair');
  if (flags.json) {
    const all = [own, ...remote];
    const journals = all.flatMap((folder) => folder.journals);
    const aside = all.flatMap((folder) => folder.aside);
    const sessions = all.flatMap((folder) => folder.sessions);
    const trackers = all.flatMap((folder) => folder.trackers);
    printJson({
      dataDir,
      healthy,
      findings,
      formatTrouble: formatTrouble?.message ?? null,
      node,
      java:
        java === undefined || java instanceof Error
          ? null
          : { major: java.java.major, command: java.java.command, package: java.packaged?.package ?? null },
      journals,
      aside,
      sessions,
      trackers,
      loops,
      gateways,
      watch: watch.since === undefined ? null : { ...watch, pid: watch.pid ?? null },
      forks: inspected.forks ?? null,
      agents: agents.map(({ agent, version, files, reach }) => ({
        agent,
        version: version ?? null,
        files,
        reach: reach ?? null,
      })),
    });
  } else {
    const { describeAddress } = await import('../xtdb/address.js');
    const foreign = remote.flatMap((folder) => [
      `remote    ${folder.path}, for a node that another program runs`,
      ...folderLines(folder, now),
    ]);
    const format = formatTrouble === null ? [] : [`          NOT USED: ${formatTrouble.message}`];
    const lines = [
      `data      ${dataDir}`,
      ...format,
      ...asked.map(({ address, why }) => `XTDB_URL  ${describeAddress(address)}: ${why}`),
      ...(java === undefined ? [] : [javaLine(java)]),
      ...nodeLines(node, [writeTrouble(node), logText(node)]),
      ...folderLines(own, now),
      ...loopLines(loops),
      ...watchLines(watch),
      ...foreign,
      ...agentLines(agents, { java, healthy: findings.every(isElsewhere) }),
      ...findingLines(findings),
    ];
    printLines(lines);
  }
  if (!healthy) process.exitCode = 1;
}

/**
 * `palimpsest doctor`: shows pending, open and broken state in a data folder, and which agents
 * reach it. Changes nothing. `packageFolder` is the folder of this installed program.
 */
export function doctorCommand(packageFolder: string): Command {
  return new Command('doctor')
    .description(
      'show pending, open and broken state in a data folder and how to fix it; changes nothing; exit code 1 if the ' +
        'node, its log, its disk or a journal needs repair, or if a format is unknown',
    )
    .addOption(dataFlag())
    .addOption(jsonFlag())
    .addOption(
      new Option('--no-agents', 'skip agents that are set up; the check makes each of them start the server briefly'),
    )
    .action((flags: DoctorFlags) => reportFailure(flags, () => examine(flags, packageFolder)));
}
