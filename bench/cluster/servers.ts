import { readdir, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { stopNode } from '../../src/index.js';
import { PASSWORD_VARIABLE, type SharedLog } from '../../src/node/shared-log.js';
import { type KafkaBroker, kafkaBroker } from '../../test/cluster/kafka-broker.js';
import { type PostgresServer, postgresServer } from '../../test/cluster/postgres-server.js';
import { copyJars } from '../../test/cluster/server-jars.mjs';
import { projectFolder, type Workshop } from '../workshop.js';

/** The measurements with their own log, each with one database, and with Kafka another. */
export type LogOf = 'calls' | 'stored' | 'caught';
export type Layout = 'postgres' | 'kafka';

const DATABASES: readonly string[] = ['calls', 'stored', 'caught'].flatMap((name) => [name, `${name}-documents`]);

/** Returns the bytes of all files below a folder with a file name ending. */
async function bytesBelow(folder: string, ending: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith(ending));
  const sizes = await Promise.all(files.map((file) => stat(join(file.parentPath, file.name)).then(({ size }) => size)));
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** A PostgreSQL and a Kafka broker for one run, and the nodes over them. */
export class ClusterServers {
  readonly #workshop: Workshop;
  readonly #jars: string;
  readonly #postgres: PostgresServer;
  readonly #kafka: KafkaBroker;
  readonly #dataDirs = new Set<string>();

  private constructor(
    workshop: Workshop,
    jars: string,
    { postgres, kafka }: { readonly postgres: PostgresServer; readonly kafka: KafkaBroker },
  ) {
    this.#workshop = workshop;
    this.#jars = jars;
    this.#postgres = postgres;
    this.#kafka = kafka;
  }

  static async open(workshop: Workshop): Promise<ClusterServers> {
    workshop.tell('PostgreSQL and Kafka');
    const { dir, paths } = await copyJars(join(projectFolder, 'test', 'cluster', 'pom.xml'), { name: 'bench-servers' });
    process.env.PALIMPSEST_TEST_JARS = JSON.stringify(paths);
    // Uses the defaults. Unlike the tests' PostgreSQL (-F), this one waits for the disk.
    const postgres = await postgresServer(DATABASES, { settings: ['fsync=on'] });
    await writeFile(join(postgres.dir, 'node-password'), postgres.password, { mode: 0o600 });
    const kafka = await kafkaBroker();
    return new ClusterServers(workshop, dir, { postgres, kafka });
  }

  log(layout: Layout, of: LogOf): SharedLog {
    const { port, user, dir } = this.#postgres;
    const database = {
      hosts: [{ host: '127.0.0.1', port }],
      name: layout === 'postgres' ? of : `${of}-documents`,
      user,
      parameters: {},
      passwordFile: join(dir, 'node-password'),
      passwordVariable: PASSWORD_VARIABLE,
    };
    if (layout === 'postgres') return { profile: 'postgres', database };
    return {
      profile: 'kafka',
      database,
      kafka: { brokers: [`127.0.0.1:${this.#kafka.port}`], topic: of, replication: 1, create: true },
    };
  }

  /** Returns the data folder of a node. The node stops before the servers. */
  dataDir(name: string): string {
    const dir = this.#workshop.dataDir(`cluster-${name}`);
    this.#dataDirs.add(dir);
    return dir;
  }

  /** Returns the bytes of the databases' files, and of all topics' records. */
  async bytes(): Promise<{ readonly postgres: number; readonly kafka: number }> {
    const [postgres, kafka] = await Promise.all([
      bytesBelow(join(this.#postgres.dir, 'data', 'base'), ''),
      bytesBelow(join(this.#kafka.dir, 'log'), '.log'),
    ]);
    return { postgres, kafka };
  }

  async close(): Promise<void> {
    await Promise.allSettled([...this.#dataDirs].map((dir) => stopNode(dir)));
    await Promise.all([this.#postgres.remove(), this.#kafka.remove()]);
    await rm(this.#jars, { recursive: true, force: true });
  }
}
