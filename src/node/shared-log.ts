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
  /** A file with the password alone. */
  passwordFile: z.string().optional(),
  /** The variable of the node's environment that has the password where no file does. */
  passwordVariable: z.string(),
});

const kafkaSchema = z.object({
  /** `host:port` of some brokers, which know the others. */
  brokers: z.array(z.string()).min(1),
  topic: z.string(),
  /** On how many brokers the topic has to be kept. */
  replication: z.int().positive(),
  /** Whether the topic is made where there is none. */
  create: z.boolean(),
  /** A file of the Kafka client's own settings: TLS, SASL. */
  propertiesFile: z.string().optional(),
});

const sharedLogSchema = z.discriminatedUnion('profile', [
  z.object({ profile: z.literal('postgres'), database: databaseSchema }),
  z.object({ profile: z.literal('kafka'), database: databaseSchema, kafka: kafkaSchema }),
]);

/** Where a log and documents lie that several nodes share, without any secret: what may be written down and shown. */
export type SharedLog = Readonly<z.infer<typeof sharedLogSchema>>;
/** A database of PostgreSQL with where its password is. */
export type SharedDatabase = SharedLog['database'];

/** The variable by which a node is handed the password of its database. */
export const PASSWORD_VARIABLE = 'PALIMPSEST_DATABASE_PASSWORD';

/** Where a data folder says which log its index is made from. */
export const sharedLogFile = (dir: string): string => join(dir, SHARED_LOG_FILE);

async function textOf(file: string): Promise<string | undefined> {
  try {
    return await unlessMissing(readFile(file, 'utf8'));
  } catch (cause) {
    throw new NodeError(
      'data-unwritable',
      `${file}, which says what the data folder is used with, cannot be read (${messageOf(cause)}). Give yourself access to it, or name another folder with --data.`,
      { cause },
    );
  }
}

/**
 * What the data folder says of a shared log; undefined where it has a database of its own, or none yet.
 * @throws {NodeError} `data-unwritable` – the file is there and cannot be read; `data-corrupt` – it does not say what it should
 */
export async function readSharedLog(dir: string): Promise<SharedLog | undefined> {
  const text = await textOf(sharedLogFile(dir));
  if (text === undefined) return undefined;
  const found = parseJson(text, sharedLogSchema);
  if (found !== undefined) return found;
  throw new NodeError(
    'data-corrupt',
    `${sharedLogFile(dir)} cannot be read. Name the log again: palimpsest node start --profile … --log …, or name another folder with --data.`,
  );
}

/** Writes which log a data folder is for, and in which format. */
export async function writeSharedLog(dir: string, log: SharedLog): Promise<void> {
  await replaceFile(sharedLogFile(dir), `${JSON.stringify({ format: DATA_FORMAT, ...log }, null, 2)}\n`);
}

/** Forgets a log that a data folder was never used with. */
export const forgetSharedLog = (dir: string): Promise<void> => rm(sharedLogFile(dir), { force: true });

const databaseText = ({ user, hosts, name }: SharedDatabase): string =>
  `PostgreSQL ${user}@${hosts.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',')}/${name}`;

/** A shared log in words, for people; it names no secret. */
export function describeSharedLog(log: SharedLog): string {
  if (log.profile === 'postgres') return databaseText(log.database);
  const { brokers, topic } = log.kafka;
  return `Kafka ${brokers.join(',')}, topic ${topic}; documents in ${databaseText(log.database)}`;
}

/** What a node is started as. */
export interface ChosenLog {
  readonly profile: NodeProfile;
  /** Undefined for the profiles that share nothing. */
  readonly log: SharedLog | undefined;
}

/**
 * The profile and log that a data folder is used with: what is asked for, else what the folder says, else a database of its own.
 * @throws {NodeError} `profile-mismatch` – the folder holds something else; `log-missing` – a shared log is asked for and nothing says where it is;
 * `data-unwritable` or `data-corrupt` – what the folder says cannot be read, so that nobody takes it for one with a database of its own
 */
export async function chooseLog(
  folder: DataFolder,
  asked: { readonly profile?: NodeProfile; readonly log?: SharedLog },
): Promise<ChosenLog> {
  const known =
    asked.profile === 'memory'
      ? undefined
      : await readSharedLog(folder.dir).catch((error) => {
          // Whoever names the log anew needs no file that is damaged.
          if (asked.log !== undefined && codeOf(error) === 'data-corrupt') return undefined;
          throw error;
        });
  const profile = asked.profile ?? asked.log?.profile ?? known?.profile ?? 'rocksdb';
  if (profile === 'memory') return { profile, log: undefined };
  if (profile === 'rocksdb') {
    if (known === undefined) return { profile, log: undefined };
    throw new NodeError(
      'profile-mismatch',
      `${folder.dir} holds the index of a node over ${describeSharedLog(known)}, and a database of its own (profile rocksdb) was asked for. Leave out --profile (and PALIMPSEST_PROFILE), or name another folder with --data.`,
    );
  }
  const log = asked.log ?? (known?.profile === profile ? known : undefined);
  if (log === undefined) {
    const documents = profile === 'kafka' ? ' --documents postgresql://USER@HOST/DATABASE' : '';
    const where = profile === 'kafka' ? 'HOST:PORT,HOST:PORT' : 'postgresql://USER@HOST/DATABASE';
    throw new NodeError(
      'log-missing',
      `Profile ${profile} needs to be told where the log is: --profile ${profile} --log ${where}${documents}`,
    );
  }
  if ((await namesIn(folder.dir)).includes('golden')) {
    throw new NodeError(
      'profile-mismatch',
      `${folder.dir} holds a database of its own (profile rocksdb), which ${describeSharedLog(log)} knows nothing of. Name another folder with --data.`,
    );
  }
  return { profile, log };
}
