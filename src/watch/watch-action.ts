import { escapedLine, grouped, printLines, printText, reportFailure, tell, writeJson } from '../cli/output.js';
import { localSecond } from '../cli/shown-values.js';
import { localFilesystemId } from '../filesystem/access/filesystem-id.js';
import { readSettings, type Settings, UsageError } from '../host/settings.js';
import { watchStatus } from '../host/watch-report.js';
import { protectDataFolder } from '../node/data-folder.js';
import { AGENT_NAMES, agentHomes } from '../own-sessions/agent-homes.js';
import { homeFolder } from '../own-sessions/search-machine.js';
import type { Companion } from './followed.js';
import { startInBackground, stopWatch } from './watch-process.js';

/** Flags of `palimpsest watch`. */
export interface WatchFlags {
  readonly data?: string;
  readonly background?: boolean;
  readonly status?: boolean;
  readonly stop?: boolean;
  readonly json?: boolean;
}

const NOT_RUNNING = 'palimpsest watch does not run. To start it: palimpsest watch --background';

const agentNames: ReadonlyMap<string, string> = new Map(Object.entries(AGENT_NAMES));

async function stop(dataDir: string, isJson: boolean): Promise<void> {
  const stopped = await stopWatch(dataDir);
  if (isJson) return writeJson({ stopped });
  printText(stopped ? 'palimpsest watch has ended.' : 'palimpsest watch does not run.');
}

async function showStatus(dataDir: string, isJson: boolean): Promise<void> {
  const { pid, since, followed, failed, notices } = await watchStatus(dataDir);
  if (isJson)
    return writeJson({
      running: pid !== undefined,
      pid: pid ?? null,
      since: since === undefined ? null : new Date(since).toISOString(),
      followed,
      failed,
      notices: notices.map(({ at, line }) => ({ at: new Date(at).toISOString(), line })),
    });
  const count = grouped(followed.length);
  printLines([
    pid === undefined ? NOT_RUNNING : `Process ${pid} follows the sessions of agents.`,
    ...(pid === undefined ? [] : [`It records ${count} ${followed.length === 1 ? 'transcript' : 'transcripts'}.`]),
    ...followed.flatMap(({ agent, session, path }) => [
      escapedLine(`  ${agentNames.get(agent) ?? agent}: ${path}`),
      escapedLine(`    session ${session}`),
    ]),
    ...failed.map(({ path, reason }) => escapedLine(`Failed: ${path}: ${reason}`)),
    ...notices.map(({ at, line }) => escapedLine(`${localSecond(new Date(at))} ${line}`)),
  ]);
}

async function follow(settings: Settings, companions: readonly Companion[]): Promise<void> {
  if (settings.nodeUrl !== undefined)
    throw new UsageError('palimpsest watch records into the data folder of this machine. Unset XTDB_URL to use it.');
  const [{ runWatch }, { WatchDatabase }, { NodeUse }] = await Promise.all([
    import('./run-watch.js'),
    import('./watch-database.js'),
    import('../host/open-store.js'),
  ]);
  const { node, nodeUrl, nodeToken } = settings;
  const { dataDir } = node;
  await protectDataFolder(dataDir);
  const database = new WatchDatabase(dataDir, () => new NodeUse(node, { nodeUrl, nodeToken }));
  const filesystemId = await localFilesystemId(dataDir);
  const stopping = new AbortController();
  const onSignal = (): void => stopping.abort();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(name, onSignal);
  const machine = { env: process.env, home: homeFolder(process.env), platform: process.platform };
  const homes = agentHomes(machine);
  const onReady = (): void => tell(`palimpsest watch follows ${homes.length} agents; process ${process.pid}.`);
  const { home } = machine;
  await runWatch({ dataDir, database, filesystemId, homes, home, companions, signal: stopping.signal, onReady });
}

/** Runs `palimpsest watch`. */
export async function watchAction(flags: WatchFlags, companions: readonly Companion[]): Promise<void> {
  await reportFailure(flags, async () => {
    const settings = readSettings(process.env, flags);
    const { dataDir } = settings.node;
    const isJson = flags.json === true;
    if (flags.stop === true) return stop(dataDir, isJson);
    if (flags.status === true) return showStatus(dataDir, isJson);
    if (flags.background !== true) return follow(settings, companions);
    const { pid, started } = await startInBackground(dataDir);
    if (isJson) return writeJson({ pid, started });
    printText(
      started
        ? `Process ${pid} follows the sessions of agents.`
        : `Process ${pid} already follows the sessions of agents.`,
    );
  });
}
