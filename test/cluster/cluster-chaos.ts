import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { NodeError } from '../../src/node/errors.js';
import type { SharedLog } from '../../src/node/shared-log.js';
import { stopNode } from '../../src/node/stop-node.js';
import { verifySession } from '../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../src/store/object-store.js';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';
import { type CheckCounts, checkEverything } from '../chaos/check-everything.js';
import { killNow, nodeState } from '../chaos/kill.js';
import { Random } from '../chaos/random.js';
import { type Caught, ChaosClient } from './chaos-client.js';
import { ChaosServers } from './chaos-servers.js';
import { startSharedNode } from './shared-node.js';

const NODES = ['a', 'b'] as const;

/** The number of faults of each kind, in a hundred. */
const FAULTS = {
  client: 44,
  jvm: 14,
  node: 10,
  'both nodes': 6,
  server: 14,
  'servers cut off': 6,
  'client cut off': 6,
} as const;
type Fault = keyof typeof FAULTS;
const CUTS: readonly Fault[] = ['servers cut off', 'client cut off'];

/**
 * The moment of a fault, in a hundred: at any time, or while a request is held. A request is held
 * before its node gets it, or before its client gets the answer.
 */
const MOMENTS = { whenever: 40, 'before a submit': 10, 'in mid-submit': 25, 'in mid-await': 25 } as const;
type Moment = keyof typeof MOMENTS;
const REQUESTS: Readonly<Record<Exclude<Moment, 'whenever'>, readonly [first: RegExp, what: 'request' | 'answer']>> = {
  'before a submit': [/^POST \/_xtdb\/submit-tx/, 'request'],
  'in mid-submit': [/^POST \/_xtdb\/submit-tx/, 'answer'],
  'in mid-await': [/^GET \/_xtdb\/\S*await-tx-id=/, 'answer'],
};
/**
 * Maximum wait for a request, in milliseconds. Afterwards the fault is applied without a request. A
 * client that is down sends no requests.
 */
const AIM_MS = 10_000;
const BACK_MS = 180_000;

/** Settings of a run. */
export interface ChaosPlan {
  readonly layout: SharedLog['profile'];
  /** A separate folder. */
  readonly folder: string;
  /** The built workload. */
  readonly script: string;
  readonly seed: number;
  /** The time for which the network stays cut, in milliseconds. */
  readonly cutMs: number;
}

/** The result of a run. */
export interface ChaosReport {
  readonly problems: readonly string[];
  readonly faults: Readonly<Partial<Record<Fault, number>>>;
  readonly moments: Readonly<Partial<Record<Moment, number>>>;
  readonly counts: Readonly<Record<keyof CheckCounts, number>>;
  /** Number of contexts that `verify` rebuilt, and of those that were equal. */
  readonly verified: { readonly contexts: number; readonly equal: number };
}

/** Two nodes over one log and the clients of two hosts, to which it applies faults. */
export class ClusterChaos {
  readonly #plan: ChaosPlan;
  readonly #random: Random;
  readonly #servers: ChaosServers;
  readonly #clients: readonly ChaosClient[];
  readonly #problems: string[] = [];
  readonly #faults: Partial<Record<Fault, number>> = {};
  readonly #moments: Partial<Record<Moment, number>> = {};
  /** Nodes that are being started. */
  readonly #starting = new Map<string, Promise<void>>();
  #mended: Promise<void> = Promise.resolve();
  #sockets: readonly string[] = [];

  private constructor(plan: ChaosPlan, servers: ChaosServers) {
    this.#plan = plan;
    this.#servers = servers;
    this.#random = new Random(plan.seed);
    this.#clients = ['one', 'two'].map((name) => new ChaosClient(name, plan));
  }

  /** Starts servers, nodes and clients. */
  static async start(plan: ChaosPlan): Promise<ClusterChaos> {
    const chaos = new ClusterChaos(plan, await ChaosServers.start(plan.layout, plan.folder));
    try {
      const sockets: string[] = [];
      for (const name of NODES) sockets.push(await startSharedNode(chaos.#data(name), chaos.#servers.log));
      chaos.#sockets = sockets;
      for (const [i, client] of chaos.#clients.entries()) {
        await mkdir(client.root, { recursive: true });
        // Each begins with another node.
        await client.reach(i === 0 ? sockets : sockets.toReversed());
        client.start();
      }
      await Promise.all(chaos.#clients.map((client) => client.opened()));
      return chaos;
    } catch (error) {
      await chaos.close();
      throw error;
    }
  }

  #data = (name: string): string => join(this.#plan.folder, name);

  /** Starts a node again once its servers can be reached. The caller does not wait for it. */
  #startNode(name: string): void {
    const start = async (): Promise<void> => {
      const until = Date.now() + BACK_MS;
      for (;;) {
        await Promise.all([this.#mended, this.#servers.back]);
        try {
          await startSharedNode(this.#data(name), this.#servers.log);
          return;
        } catch (error) {
          // The server may have been killed meanwhile.
          if (!(error instanceof NodeError) || Date.now() > until) throw error;
          await delay(200);
        }
      }
    };
    const started = start().catch(
      (error: unknown) => void this.#problems.push(`node ${name} did not start again: ${String(error)}`),
    );
    this.#starting.set(name, started);
  }

  async #killNode(name: string, kind: 'jvm' | 'supervisor+jvm'): Promise<void> {
    await this.#starting.get(name);
    await killNow(this.#data(name), () => false, kind);
    if (kind === 'supervisor+jvm') this.#startNode(name);
  }

  /**
   * Waits for a request at the chosen moment. Undefined if no request comes, or if the moment is
   * any time.
   */
  async #aim(moment: Moment): Promise<Caught | undefined> {
    if (moment === 'whenever') return undefined;
    // No client sends a request before a session is open.
    await Promise.race(this.#clients.map((client) => client.opened()));
    const [first, what] = REQUESTS[moment];
    const over = new AbortController();
    const limit = setTimeout(() => over.abort(), AIM_MS);
    const holds = this.#clients.map((client) => client.hold(first, what, over.signal));
    const caught = await new Promise<Caught | undefined>((resolve) => {
      for (const hold of holds) void hold.then((one) => one !== undefined && resolve(one));
      over.signal.addEventListener('abort', () => resolve(undefined), { once: true });
    });
    clearTimeout(limit);
    over.abort();
    // Releases all but one of the requests that are held together.
    for (const other of await Promise.all(holds)) if (other !== undefined && other !== caught) other.release();
    return caught;
  }

  async #apply(fault: Fault, aimed: Caught | undefined): Promise<void> {
    const random = this.#random;
    const client = aimed?.client ?? random.pick(this.#clients);
    const at = aimed?.node ?? random.between(0, NODES.length - 1);
    // Each client's list is the reverse of the other's.
    const name = NODES[client === this.#clients[0] || aimed === undefined ? at : NODES.length - 1 - at] ?? 'a';
    if (fault === 'client') {
      client.kill();
      this.#problems.push(...(await client.end('killed')));
      client.start();
    } else if (fault === 'jvm') await this.#killNode(name, 'jvm');
    else if (fault === 'node') await this.#killNode(name, 'supervisor+jvm');
    else if (fault === 'both nodes') await Promise.all(NODES.map((one) => this.#killNode(one, 'supervisor+jvm')));
    else if (fault === 'server')
      await this.#servers.kill(random.pick(this.#servers.names), { pauseMs: random.between(0, 2_000) });
    else {
      const cut = fault === 'servers cut off' ? this.#servers : client;
      cut.cut();
      this.#mended = delay(this.#plan.cutMs).then(() => cut.mend());
    }
  }

  get #isCut(): boolean {
    return this.#servers.isCut || this.#clients.some((client) => client.isCut);
  }

  async #nodesAreBack(): Promise<void> {
    await Promise.all([this.#mended, this.#servers.back, ...this.#starting.values()]);
    const until = Date.now() + BACK_MS;
    for (const name of NODES)
      while ((await nodeState(this.#data(name)))?.phase !== 'ready' && Date.now() < until) await delay(50);
  }

  /**
   * Applies the faults one after the other. Some wait until everything has recovered from the
   * previous fault. Others come during its outage or during a cut.
   */
  async run(kills: number, onProgress: (line: string) => void): Promise<void> {
    const random = this.#random;
    for (let i = 0; i < kills && this.#problems.length === 0; i++) {
      const drawn = random.weighted(FAULTS);
      // Only one cut of the network exists at a time, and each lasts its whole length.
      const fault = CUTS.includes(drawn) && this.#isCut ? 'client' : drawn;
      const moment = this.#servers.isCut ? 'whenever' : random.weighted(MOMENTS);
      const aimed = await this.#aim(moment);
      const hit = aimed === undefined ? 'whenever' : moment;
      this.#faults[fault] = (this.#faults[fault] ?? 0) + 1;
      this.#moments[hit] = (this.#moments[hit] ?? 0) + 1;
      onProgress(`${i + 1} of ${kills}: ${fault}, ${hit}`);
      await this.#apply(fault, aimed);
      aimed?.release();
      await delay(random.between(5, 400));
      if (this.#isCut && random.chance(0.8)) continue;
      if (random.chance(0.35)) await this.#nodesAreBack();
      if (random.chance(0.6)) await Promise.all(this.#clients.map((client) => client.opened()));
    }
    await this.#nodesAreBack();
    for (const client of this.#clients) {
      client.kill();
      this.#problems.push(...(await client.end('killed')));
      client.start(true);
      this.#problems.push(...(await client.end('finished')));
    }
  }

  /** Waits until every node has indexed the newest transaction of any node. */
  async #nodesAreEven(): Promise<void> {
    const nodes = this.#sockets.map((socketPath) => new XtdbClient({ kind: 'unix', socketPath }));
    try {
      const newest = Math.max(
        ...(await Promise.all(nodes.map(async (node) => (await node.latestCompletedTx())?.txId ?? -1))),
      );
      await Promise.all(nodes.map((node) => node.awaitOutcome(newest)));
    } finally {
      await Promise.all(nodes.map((node) => node.close()));
    }
  }

  /**
   * Checks every acknowledgement of each client at the other node than the client's first. Also
   * verifies every context.
   */
  async check(): Promise<ChaosReport> {
    await this.#nodesAreEven();
    const problems = [...this.#problems];
    const all: CheckCounts[] = [];
    const verified = { contexts: 0, equal: 0 };
    for (const [i, client] of this.#clients.entries()) {
      const socketPath = this.#sockets[this.#sockets.length - 1 - i] ?? '';
      const others = this.#clients.filter((one) => one !== client).flatMap(({ sessions }) => sessions);
      const { sessions, said } = client;
      const run = { sessions, resumed: sessions, others, said, contexts: said.length + 1 };
      const found = await checkEverything(client.place(`unix:${socketPath}`), run);
      problems.push(...found.problems);
      all.push(found.counts);
      const xtdb = new XtdbClient({ kind: 'unix', socketPath });
      try {
        for (const session of sessions) {
          const { ok, contexts, answers, parts } = await verifySession(new ObjectStore(xtdb), session);
          const handed = new Set(
            said.flatMap((line) =>
              line.kind === 'handed' && line.session === session ? [`${line.step} ${line.text}`] : [],
            ),
          );
          if (contexts.total < handed.size)
            problems.push(
              `${session}: of ${handed.size} contexts that were handed out ${contexts.total} have a record`,
            );
          verified.contexts += contexts.total;
          verified.equal += contexts.equal;
          if (!ok)
            problems.push(
              `${session} does not verify: ${JSON.stringify({ contexts, answers, parts }).slice(0, 2_000)}`,
            );
        }
      } finally {
        await xtdb.close();
      }
    }
    const sum = (key: keyof CheckCounts): number => all.reduce((total, counts) => total + counts[key], 0);
    const keys: readonly (keyof CheckCounts)[] = [
      'sessions',
      'steps',
      'calls',
      'untold',
      'files',
      'unmet',
      'versions',
      'contexts',
    ];
    const counts = Object.fromEntries(keys.map((key) => [key, sum(key)])) as Record<keyof CheckCounts, number>;
    return { problems, faults: this.#faults, moments: this.#moments, counts, verified };
  }

  async close(): Promise<void> {
    for (const client of this.#clients) client.close();
    this.#servers.mend();
    await Promise.all([this.#servers.back.catch(() => undefined), ...this.#starting.values()]);
    await Promise.all(NODES.map((name) => stopNode(this.#data(name))));
    await this.#servers.remove();
  }
}
