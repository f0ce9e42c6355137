import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SharedLog } from '../../src/node/shared-log.js';
import { type CuttableRelay, cuttableRelay } from './cuttable-relay.js';
import { type KafkaBroker, kafkaBroker } from './kafka-broker.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';
import { sharedLogOn } from './shared-node.js';

/** A server that can be killed. */
type Mortal = Pick<PostgresServer, 'kill' | 'start' | 'remove'>;

/** The servers of a layout, each behind a relay, so that they can be killed and cut off. */
export class ChaosServers {
  readonly log: SharedLog;
  /** Resolves once the killed servers listen again; never rejects. */
  back: Promise<void> = Promise.resolve();
  readonly #servers: Readonly<Record<string, Mortal>>;
  readonly #relays: readonly CuttableRelay[];

  private constructor(log: SharedLog, servers: Readonly<Record<string, Mortal>>, relays: readonly CuttableRelay[]) {
    this.log = log;
    this.#servers = servers;
    this.#relays = relays;
  }

  /** Starts the servers of a layout. Writes the database's password into a file of this folder. */
  static async start(layout: SharedLog['profile'], folder: string): Promise<ChaosServers> {
    const postgres = await postgresServer(['log']);
    const passwordFile = join(folder, 'password');
    await writeFile(passwordFile, postgres.password);
    const relay = await cuttableRelay(postgres.port);
    const place = { postgres: { port: relay.port, user: postgres.user }, passwordFile };
    if (layout === 'postgres') return new ChaosServers(sharedLogOn(place), { database: postgres }, [relay]);
    const relays = [relay];
    const broker: KafkaBroker = await kafkaBroker(async (port) => {
      const toBroker = await cuttableRelay(port);
      relays.push(toBroker);
      return toBroker.port;
    });
    const log = sharedLogOn({ ...place, kafka: { port: relays[1]?.port ?? broker.port } });
    return new ChaosServers(log, { database: postgres, broker }, relays);
  }

  /** The servers that can be killed. */
  get names(): readonly string[] {
    return Object.keys(this.#servers);
  }

  /** Whether the servers are cut off from the nodes. */
  get isCut(): boolean {
    return this.#relays.some((relay) => relay.isCut);
  }

  /** Kills a server. It starts again after `pauseMs`; this call does not wait for it. */
  async kill(name: string, { pauseMs }: { readonly pauseMs: number }): Promise<void> {
    await this.back;
    const server = this.#servers[name];
    await server?.kill();
    this.back = new Promise((resolve) => setTimeout(resolve, pauseMs)).then(() => server?.start());
  }

  cut(): void {
    for (const relay of this.#relays) relay.cut();
  }

  mend(): void {
    for (const relay of this.#relays) relay.mend();
  }

  async remove(): Promise<void> {
    this.mend();
    await this.back.catch(() => undefined);
    for (const relay of this.#relays) relay.close();
    await Promise.all(Object.values(this.#servers).map((server) => server.remove()));
  }
}
