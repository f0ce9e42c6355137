import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { namesIn, parseJson, replaceFile } from '../process/owned-file.js';
import { unlessMissing } from '../process/system-error.js';
import { codeOf, messageOf } from '../values/thrown.js';
import { DATA_FORMAT, type DataFolder, SHARED_LOG_FILE } from './data-folder.js';
import { NodeError } from './errors.js';
import type { NodeProfile } from './node-state.js';

const databaseSchema = z.object({
  hosts: z.array(z.object({ host: z.string(), port: z.int() })).min(1),
  name: z.string(),
  user: z.string(),
  parameters: z.record(z.string(), z.string()),
  /** A file that contains only the password. */
  passwordFile: z.string().optional(),
  /** The variable of the node's environment with the password, if there is no file. */
  passwordVariable: z.string(),
});

const kafkaSchema = z.object({
  /** `host:port` of some brokers. They know the other brokers. */
  brokers: z.array(z.string()).min(1),
  topic: z.string(),
  /** Required number of brokers with a copy of the topic. */
  replication: z.int().positive(),
  /** Whether a missing topic is created. */
  create: z.boolean(),
  /** A file with settings of the Kafka client: TLS, SASL. */
  propertiesFile: z.string().optional(),
});

const sharedLogSchema = z.discriminatedUnion('profile', [
  z.object({ profile: z.literal('postgres'), database: databaseSchema }),
  z.object({ profile: z.literal('kafka'), database: databaseSchema, kafka: kafkaSchema }),
]);

/**
 * The log and documents that several nodes share, without any secret. It may be stored and shown.
 */
export type SharedLog = Readonly<z.infer<typeof sharedLogSchema>>;
/** A PostgreSQL database and the location of its password. */
export type SharedDatabase = SharedLog['database'];

/** The variable that passes a database password to the node. */
export const PASSWORD_VARIABLE = 'PALIMPSEST_DATABASE_PASSWORD';

/** Returns the file of a data folder that names its shared log. */
export const sharedLogFile = (dir: string): string => join(dir, SHARED_LOG_FILE);

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await unlessMissing(readFile(file, 'utf8'));
  } catch (cause) {
    throw new NodeError(
      'data-unwritable',
      `${file}, which names the log of the data folder, cannot be read (${messageOf(cause)}). ` +
        'Give yourself access to it, or name another folder with --data.',
      { cause },
    );
  }
}

/**
 * Reads the shared log of a data folder; undefined if it has its own database, or none yet.
 * @throws {NodeError} `data-unwritable` – the file cannot be read; `data-corrupt` – its content is
 *   invalid
 */
export async function readSharedLog(dir: string): Promise<SharedLog | undefined> {
  const text = await textOf(sharedLogFile(dir));
  if (text === undefined) return undefined;
  const found = parseJson(text, sharedLogSchema);
  if (found !== undefined) return found;
  throw new NodeError(
    'data-corrupt',
    `${sharedLogFile(dir)} cannot be read. Name the log again: ` +
      'palimpsest node start --profile … --log …, or name another folder with --data.',
  );
}

/** Writes the shared log of a data folder and its format. */
export async function writeSharedLog(dir: string, log: SharedLog): Promise<void> {
  await replaceFile(sharedLogFile(dir), `${JSON.stringify({ format: DATA_FORMAT, ...log }, null, 2)}\n`);
}

/** Removes the log's file from a data folder that was never used with the log. */
export const forgetSharedLog = (dir: string): Promise<void> => rm(sharedLogFile(dir), { force: true });

const databaseText = ({ user, hosts, name }: SharedDatabase): string => {
  const servers = hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`);
  return `PostgreSQL ${user}@${servers.join(',')}/${name}`;
};

/** Describes a shared log for people, without secrets. */
export function describeSharedLog(log: SharedLog): string {
  if (log.profile === 'postgres') return databaseText(log.database);
  const { brokers, topic } = log.kafka;
  return `Kafka ${brokers.join(',')}, topic ${topic}; documents in ${databaseText(log.database)}`;
}

/** The profile and log of a start. */
export interface ChosenLog {
  readonly profile: NodeProfile;
  /** The shared log. Undefined for other profiles. */
  readonly log: SharedLog | undefined;
}

/**
 * Returns the profile and log of a data folder: those requested, or otherwise those that the folder
 * names, or otherwise the folder's own database.
 * @throws {NodeError} `profile-mismatch` – the folder has another database; `log-missing` – a
 *   shared log is requested and its address is unknown. `data-unwritable` or `data-corrupt` – the
 *   folder's file cannot be read, so that the folder does not pass for one with its own database
 */
export async function chooseLog(
  folder: DataFolder,
  asked: { readonly profile?: NodeProfile; readonly log?: SharedLog },
): Promise<ChosenLog> {
  const known =
    asked.profile === 'memory'
      ? undefined
      : await readSharedLog(folder.dir).catch((error) => {
          // A requested log replaces the damaged file.
          if (asked.log !== undefined && codeOf(error) === 'data-corrupt') return undefined;
          throw error;
        });
  const profile = asked.profile ?? asked.log?.profile ?? known?.profile ?? 'rocksdb';
  if (profile === 'memory') return { profile, log: undefined };
  if (profile === 'rocksdb') {
    if (known === undefined) return { profile, log: undefined };
    throw new NodeError(
      'profile-mismatch',
      `${folder.dir} holds the index of a node over ${describeSharedLog(known)}, and its own database ` +
        '(profile rocksdb) was asked for. Leave out --profile (and PALIMPSEST_PROFILE), or name another folder ' +
        'with --data.',
    );
  }
  const log = asked.log ?? (known?.profile === profile ? known : undefined);
  if (log === undefined) {
    const documents = profile === 'kafka' ? ' --documents postgresql://USER@HOST/DATABASE' : '';
    const where = profile === 'kafka' ? 'HOST:PORT,HOST:PORT' : 'postgresql://USER@HOST/DATABASE';
    throw new NodeError(
      'log-missing',
      `Profile ${profile} needs the address of its log: --profile ${profile} --log ${where}${documents}`,
    );
  }
  if ((await namesIn(folder.dir)).includes('golden')) {
    throw new NodeError(
      'profile-mismatch',
      `${folder.dir} holds its own database (profile rocksdb), which is not part of ` +
        `${describeSharedLog(log)}. Name another folder with --data.`,
    );
  }
  return { profile, log };
}
