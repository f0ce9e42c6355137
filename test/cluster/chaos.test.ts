import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, test } from '@jest/globals';
import { ensureNode } from '../../src/node/ensure-node.js';
import { stopNode } from '../../src/node/stop-node.js';
import { filesystemId, type SessionId, sessionId } from '../../src/objects/ids.js';
import type { Line } from '../chaos/acknowledged.js';
import { buildPrograms } from '../chaos/build.mjs';
import { checkEverything } from '../chaos/check-everything.js';
import { missingSteps } from '../chaos/check-resume.js';
import { killNow, nodeState } from '../chaos/kill.js';
import { Random } from '../chaos/random.js';
import { Service } from '../chaos/service.js';
import { type CuttableRelay, cuttableRelay } from './cuttable-relay.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';

/** `KILLS=200 npm run test:cluster -- chaos` makes so many; the run's seed is in its failure, `SEED` repeats it. */
const KILLS = Number(process.env.KILLS ?? 8);
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
/** A long run has cuts of half a minute, after which TCP has given up here and there; a short one cannot afford them. */
const CUT_MS = KILLS >= 100 ? 30_000 : 2_500;
const NODES = ['a', 'b'] as const;
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Who dies, or is cut off, how often. */
const BLOWS = { client: 50, jvm: 14, node: 10, 'both nodes': 6, database: 12, cut: 8 } as const;
type Blow = keyof typeof BLOWS;

/** One host's clients: a process with two sessions, its data folder and its files. */
interface Client {
  readonly name: string;
  readonly sessions: readonly SessionId[];
  readonly said: Line[];
  readonly since: Record<string, number>;
  unchecked: readonly Line[];
  incarnation: number;
  service: Service | undefined;
}

class ClusterChaos {
  readonly problems: string[] = [];
  readonly blows: Partial<Record<Blow, number>> = {};
  readonly #random = new Random(SEED);
  readonly #script: string;
  readonly #folder: string;
  readonly #postgres: PostgresServer;
  readonly #relay: CuttableRelay;
  #urls: readonly string[] = [];
  readonly clients: readonly Client[] = ['one', 'two'].map((name) => ({
    name,
    sessions: ['x', 'y'].map((which) => sessionId(`chaos-${name}-${which}`)),
    said: [],
    since: {},
    unchecked: [],
    incarnation: 0,
    service: undefined,
  }));

  constructor(script: string, folder: string, { postgres, relay }: { readonly postgres: PostgresServer; readonly relay: CuttableRelay }) {
    this.#script = script;
    this.#folder = folder;
    this.#postgres = postgres;
    this.#relay = relay;
  }

  #data = (name: string): string => join(this.#folder, name);

  async #startNode(name: string): Promise<string> {
    const database = {
      hosts: [{ host: '127.0.0.1', port: this.#relay.port }],
      name: 'log',
      user: this.#postgres.user,
      parameters: {},
      passwordFile: join(this.#folder, 'password'),
      passwordVariable: 'PALIMPSEST_DATABASE_PASSWORD',
    };
    const { address, release } = await ensureNode({
      dataDir: this.#data(name),
      profile: 'postgres',
      log: { profile: 'postgres', database },
      idleExitSeconds: 0,
    });
    await release();
    if (address.kind !== 'unix') throw new Error('the node listens on no socket');
    return `unix:${address.socketPath}`;
  }

  async startNodes(): Promise<void> {
    const urls: string[] = [];
    for (const name of NODES) urls.push(await this.#startNode(name));
    this.#urls = urls;
  }

  /** Each client begins with another node. */
  #urlOf({ name }: Client): string {
    return (name === 'one' ? this.#urls : this.#urls.toReversed()).join(',');
  }

  start(client: Client, finish = false): void {
    client.incarnation += 1;
    client.service = new Service(this.#script, {
      dataDir: this.#data(`data-${client.name}`),
      nodeUrl: this.#urlOf(client),
      root: this.#data(`files-${client.name}`),
      filesystemId: filesystemId(`fs-${client.name}`),
      sessions: client.sessions,
      since: client.since,
      linesFile: join(this.#folder, `${client.name}-${client.incarnation}.jsonl`),
      seed: (SEED % 1_000_003) * 101 + client.incarnation,
      pauseMs: 30,
      finish,
    });
  }

  /** Takes what a process said, and looks whether it found what those before it had said. */
  async #end(client: Client, expected: 'killed' | 'finished'): Promise<void> {
    const { lines = [], code = null, stderr = '' } = (await client.service?.end()) ?? {};
    client.service = undefined;
    for (const line of lines) {
      if (line.kind === 'refused') this.problems.push(`client ${client.name}: ${line.what}: ${line.error}`);
      if (line.kind !== 'resumed') continue;
      for (const found of line.found) {
        this.problems.push(...missingSteps(found, client.unchecked));
        client.since[found.session] = found.seq;
        client.unchecked = client.unchecked.filter((said) => !('session' in said) || said.session !== found.session);
      }
    }
    client.said.push(...lines);
    client.unchecked = [...client.unchecked, ...lines];
    if (code !== (expected === 'finished' ? 0 : null))
      this.problems.push(`client ${client.name} ended with ${code}: ${stderr.slice(-2_000)}`);
  }

  async #killNode(name: string, kind: 'jvm' | 'supervisor+jvm'): Promise<void> {
    await killNow(this.#data(name), () => false, kind);
    if (kind === 'supervisor+jvm') await this.#startNode(name);
  }

  async #strike(blow: Blow): Promise<void> {
    const random = this.#random;
    const name = NODES[random.between(0, 1)] ?? 'a';
    if (blow === 'client') {
      const client = this.clients[random.between(0, 1)];
      if (client === undefined) return;
      client.service?.kill();
      await this.#end(client, 'killed');
      this.start(client);
    } else if (blow === 'jvm') await this.#killNode(name, 'jvm');
    else if (blow === 'node') await this.#killNode(name, 'supervisor+jvm');
    else if (blow === 'both nodes') await Promise.all(NODES.map((one) => this.#killNode(one, 'supervisor+jvm')));
    else if (blow === 'database') {
      await this.#postgres.kill();
      await delay(random.between(0, 2_000));
      await this.#postgres.start();
    } else {
      this.#relay.cut();
      await delay(CUT_MS);
      this.#relay.mend();
    }
  }

  async #nodesAreBack(): Promise<void> {
    const until = Date.now() + 120_000;
    for (const name of NODES) while ((await nodeState(this.#data(name)))?.phase !== 'ready' && Date.now() < until) await delay(50);
  }

  async run(kills: number): Promise<void> {
    for (const client of this.clients) {
      await mkdir(this.#data(`files-${client.name}`), { recursive: true });
      this.start(client);
    }
    await Promise.all(this.clients.map(({ service }) => service?.opened(90_000)));
    for (let i = 0; i < kills && this.problems.length === 0; i++) {
      const blow = this.#random.weighted(BLOWS);
      this.blows[blow] = (this.blows[blow] ?? 0) + 1;
      await this.#strike(blow);
      // Now and then the next blow falls while everything is still down.
      if (this.#random.chance(0.6)) await this.#nodesAreBack();
      if (this.#random.chance(0.7)) await Promise.all(this.clients.map(({ service }) => service?.opened(90_000)));
      await delay(this.#random.between(5, 600));
    }
    await this.#nodesAreBack();
    for (const client of this.clients) {
      client.service?.kill();
      await this.#end(client, 'killed');
      this.start(client, true);
      await this.#end(client, 'finished');
    }
  }

  /** Everything that each client was told, as the other client's node has it. */
  async check(): Promise<readonly string[]> {
    for (const client of this.clients) {
      const others = this.clients.filter((one) => one !== client);
      const place = {
        dataDir: this.#data(`data-${client.name}`),
        root: this.#data(`files-${client.name}`),
        filesystemId: filesystemId(`fs-${client.name}`),
        nodeUrl: this.#urlOf(others[0] ?? client),
      };
      const sessions = {
        sessions: client.sessions,
        resumed: client.sessions,
        others: others.flatMap((one) => one.sessions),
        said: client.said,
      };
      this.problems.push(...(await checkEverything(place, sessions)).problems);
    }
    return this.problems;
  }

  async close(): Promise<void> {
    for (const { service } of this.clients) service?.kill();
    this.#relay.mend();
    await Promise.all(NODES.map((name) => stopNode(this.#data(name))));
    this.#relay.close();
    await this.#postgres.remove();
  }
}

test(
  'two nodes over one PostgreSQL and four sessions of two hosts: nodes, clients and database killed, the network cut; nothing acknowledged is lost, doubled or reordered, and every context is made again',
  async () => {
    const programs = await mkdtemp(join(root, 'node_modules', '.chaos-'));
    const folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-cluster-chaos-')));
    const postgres = await postgresServer(['log']);
    await writeFile(join(folder, 'password'), postgres.password);
    const [script = ''] = await buildPrograms(programs, ['workload']);
    const chaos = new ClusterChaos(script, folder, { postgres, relay: await cuttableRelay(postgres.port) });
    try {
      await chaos.startNodes();
      await chaos.run(KILLS);
      expect({ seed: SEED, problems: await chaos.check() }).toEqual({ seed: SEED, problems: [] });
      const calls = chaos.clients.flatMap(({ said }) => said.filter(({ kind }) => kind === 'call'));
      expect(calls.length).toBeGreaterThan(KILLS);
      process.stderr.write(`chaos: seed ${SEED}, ${JSON.stringify(chaos.blows)}, ${calls.length} calls acknowledged\n`);
    } finally {
      await chaos.close();
      await rm(programs, { recursive: true, force: true });
      await rm(folder, { recursive: true, force: true });
    }
  },
  120_000 + KILLS * 60_000,
);
