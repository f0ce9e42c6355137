import { ensureNode } from '../../src/node/ensure-node.js';
import type { SharedLog } from '../../src/node/shared-log.js';
import type { KafkaBroker } from './kafka-broker.js';
import type { PostgresServer } from './postgres-server.js';

/** The servers of a log, as clients reach them, and the database's password. */
export interface LogPlace {
  readonly postgres: Pick<PostgresServer, 'port' | 'user'>;
  readonly passwordFile: string;
  /** The place of a log in Kafka. Without it, the log is in PostgreSQL. */
  readonly kafka?: Pick<KafkaBroker, 'port'> | undefined;
}

/** A log in the database `log`, or in the topic `log` with its documents in that database. */
export function sharedLogOn({ postgres, passwordFile, kafka }: LogPlace): SharedLog {
  const database = {
    hosts: [{ host: '127.0.0.1', port: postgres.port }],
    name: 'log',
    user: postgres.user,
    parameters: {},
    passwordFile,
    passwordVariable: 'PALIMPSEST_DATABASE_PASSWORD',
  };
  if (kafka === undefined) return { profile: 'postgres', database };
  return {
    profile: 'kafka',
    database,
    kafka: { brokers: [`127.0.0.1:${kafka.port}`], topic: 'log', replication: 1, create: true },
  };
}

/**
 * Starts a node over a log in a data folder unless it runs there. Returns its socket. It runs until
 * it is stopped.
 */
export async function startSharedNode(dataDir: string, log: SharedLog): Promise<string> {
  const { address, release } = await ensureNode({ dataDir, profile: log.profile, log, idleExitSeconds: 0 });
  await release();
  if (address.kind !== 'unix') throw new Error('the node listens on no socket');
  return address.socketPath;
}
