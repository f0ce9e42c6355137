import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Agent, Surroundings } from '../../src/agents/agent.js';
import { AGENTS } from '../../src/agents/agent-table.js';
import { installHookClient } from '../../src/agents/hooks/install-client.js';
import { applyPlanned, planSetup } from '../../src/agents/plan-setup.js';
import { upstreamBases } from '../../src/gateway/bases.js';
import { openGateway } from '../../src/gateway/gateway-action.js';
import { gatewayFolder } from '../../src/gateway/gateway-log.js';
import { GatewayLogReader, type SentRequest } from '../../src/gateway/read-log.js';
import { hookCompanion } from '../../src/hooks/serve-hooks.js';
import { sessionId } from '../../src/objects/ids.js';
import { gatewayCompanion } from '../../src/watch/gateway-contexts.js';
import { until } from '../support/until.js';
import { WatchedMachine } from '../support/watched.js';

/** The ways over which a session is recorded beside its transcript. */
export interface Ways {
  readonly hooks: boolean;
  readonly gateway: boolean;
}

/** A machine with a project, the watcher, and a gateway before a scripted upstream. */
export interface ObservedMachine {
  readonly watched: WatchedMachine;
  readonly home: string;
  readonly project: string;
  /** The base address that the agent gets. */
  readonly address: string;
  /** Failures of the gateway. */
  readonly troubles: readonly string[];
  /** Ends the gateway and returns its log. */
  logged(): Promise<readonly SentRequest[]>;
  close(): Promise<void>;
}

/** Returns every request in a gateway's log, in order. */
export async function requestsIn(dataDir: string): Promise<readonly SentRequest[]> {
  const sent: SentRequest[] = [];
  for await (const one of new GatewayLogReader(gatewayFolder(dataDir)).more()) sent.push(one);
  return sent;
}

/** Writes the hooks of an agent as `palimpsest setup --way hooks` does, with the native client. */
async function withHooks(watched: WatchedMachine, agent: 'claude' | 'codex', project: string) {
  const { dataDir } = watched;
  const { home } = watched.machine;
  const at: Surroundings = { env: process.env, home, platform: process.platform, cwd: project };
  const packageFolder = join(home, 'program');
  await mkdir(join(packageFolder, 'dist'), { recursive: true });
  const source = await readFile(resolve('src/hooks/native/palimpsest-hook.c'));
  await writeFile(join(packageFolder, 'dist', 'palimpsest-hook.c'), source);
  await installHookClient(dataDir, { packageFolder, at });
  const server = () => ({ command: 'palimpsest', args: ['mcp'] });
  const wanted = { at: { ...at, env: {} }, scope: 'user', server, dataDir, isDataNamed: true, packageFolder } as const;
  const known = AGENTS.find(({ id }) => id === agent) as Agent;
  const plan = await planSetup(known, ['hooks'], { wanted, dataDir });
  if ('refused' in plan) throw new Error(plan.refused);
  for (const planned of plan) await applyPlanned(planned, dataDir);
  return hookCompanion({ packageFolder, at });
}

/** Starts a machine whose agent is recorded over its transcript and other ways. */
export async function observedMachine(
  agent: 'claude' | 'codex',
  upstream: { readonly name: string; readonly url: string },
  { hooks, gateway: isBehind }: Ways,
  settings: Readonly<Record<string, (address: string) => string>> = {},
): Promise<ObservedMachine> {
  const watched = await WatchedMachine.create();
  const { home } = watched.machine;
  const project = join(home, 'project');
  for (const folder of [project, watched.dataDir]) await mkdir(folder, { mode: 0o700, recursive: true });
  const troubles: string[] = [];
  const gateway = await openGateway({
    dataDir: watched.dataDir,
    bases: upstreamBases([`${upstream.name}=${upstream.url}`]),
    port: 0,
    onTrouble: (message) => troubles.push(message),
  });
  const address = isBehind ? `${gateway.address}/${upstream.name}` : upstream.url;
  for (const [name, text] of Object.entries(settings)) {
    await mkdir(dirname(join(home, name)), { recursive: true });
    await writeFile(join(home, name), text(address));
  }
  const served = hooks ? [await withHooks(watched, agent, project)] : [];
  await watched.start({}, [...served, gatewayCompanion]);
  return {
    watched,
    home,
    project,
    address,
    troubles,
    logged: async () => {
      await gateway.close();
      return requestsIn(watched.dataDir);
    },
    close: async () => {
      await gateway.close();
      await watched.remove();
    },
  };
}

/** Waits until a session has this number of contexts that the gateway saw. */
export async function contextsOf(watched: WatchedMachine, id: string, count: number) {
  const snapshot = async () => (await watched.store.latest()).assemblies(sessionId(id)).catch(() => []);
  const all = await until(
    snapshot,
    (found) => found.filter(({ delivered }) => delivered === 'gateway').length >= count,
  );
  return all.filter(({ delivered }) => delivered === 'gateway');
}
