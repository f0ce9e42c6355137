import { isAbsolute, resolve } from 'node:path';
import { sharesLog } from '../node/node-state.js';
import { parseDatabaseUrl } from '../node/postgres-url.js';
import { PASSWORD_VARIABLE, type SharedDatabase, type SharedLog } from '../node/shared-log.js';
import { defined } from '../values/defined.js';
import { type Environment, variable } from './environment.js';

/** The flags of `node start` that select a shared log. */
export interface SharedLogFlags {
  readonly log?: string;
  readonly documents?: string;
  readonly passwordFile?: string;
  readonly topic?: string;
  readonly replication?: number;
  readonly createTopic?: boolean;
  readonly kafkaProperties?: string;
}

/**
 * A shared log from flags and variables. Unless a file has the database password, also the
 * environment with it.
 */
export interface SharedLogSettings {
  readonly log: SharedLog;
  readonly environment?: Environment;
}

/** Default number of brokers with a copy of the topic. One may be lost while another is down. */
const REPLICATION = 3;
const TOPIC = 'palimpsest-log';
const BROKER = /^(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):(\d{1,5})$/;

/** The flags of a shared log. */
const OF_LOGS = [
  ['log', '--log'],
  ['documents', '--documents'],
  ['passwordFile', '--password-file'],
  ['topic', '--topic'],
  ['replication', '--replication'],
  ['createTopic', '--create-topic'],
  ['kafkaProperties', '--kafka-properties'],
] as const satisfies readonly (readonly [keyof SharedLogFlags, string])[];
/** The flags that only Kafka uses. */
const OF_KAFKA: ReadonlySet<string> = new Set([
  '--documents',
  '--topic',
  '--replication',
  '--create-topic',
  '--kafka-properties',
]);

function brokersOf(text: string): string[] {
  const brokers = text.split(',').map((broker) => broker.trim());
  const wrong = brokers.find((broker) => !(Number(BROKER.exec(broker)?.[1]) <= 65_535));
  if (wrong === undefined) return brokers;
  // The text may be a misplaced URL with a password, which may contain a comma.
  const shown = /@|:\/\//.test(text) ? 'one of them' : JSON.stringify(wrong);
  throw new Error(`The brokers of Kafka must have the form HOST:PORT,HOST:PORT; ${shown} does not.`);
}

function topicOf(topic: string): string {
  if (/^[A-Za-z0-9._-]{1,249}$/.test(topic) && topic !== '.' && topic !== '..') return topic;
  throw new Error(
    `${JSON.stringify(topic)} is not a valid topic name: use at most 249 letters, digits, dots, underscores and ` +
      'hyphens.',
  );
}

function replicationOf(text: string): number {
  const count = Number(text);
  if (/^\d+$/.test(text) && count >= 1 && count <= 32_767) return count;
  throw new Error(
    `The replication of a topic must be a whole number from 1 to 32767, not ${JSON.stringify(text)} ` +
      '(PALIMPSEST_REPLICATION).',
  );
}

/** Requires an absolute path, because the node reads the file later, from another folder. */
function fileOf([name, path]: readonly [name: string, path: string | undefined]): string | undefined {
  if (path === undefined || isAbsolute(path)) return path;
  if (name.startsWith('--')) return resolve(path);
  throw new Error(`${name} must be an absolute path, not ${JSON.stringify(path)}.`);
}

/** Returns the value of a flag, or otherwise of a variable, with the name of its origin. */
function given(env: Environment, flag: readonly [name: string, value: string | undefined], name: string) {
  const [flagName, value] = flag;
  return value === undefined ? ([name, variable(env, name)] as const) : ([flagName, value] as const);
}

function databaseOf(
  env: Environment,
  [name, url]: readonly [name: string, url: string],
  passwordFile: string | undefined,
): { readonly database: SharedDatabase; readonly environment?: Environment } {
  const { database, password } = parseDatabaseUrl(url);
  if (password !== undefined && name.startsWith('--')) {
    throw new Error(
      `${name} must not contain a password, because every user of this machine could read it. Put it in a file ` +
        `(--password-file) or in ${PASSWORD_VARIABLE}.`,
    );
  }
  const found = passwordFile === undefined ? (variable(env, PASSWORD_VARIABLE) ?? password) : undefined;
  // The URL may contain the password, too. The node does not need the URL.
  const environment =
    found === undefined
      ? undefined
      : { ...env, PALIMPSEST_LOG: '', PALIMPSEST_DOCUMENTS: '', [PASSWORD_VARIABLE]: found };
  return {
    database: {
      ...database,
      hosts: [...database.hosts],
      parameters: { ...database.parameters },
      passwordVariable: PASSWORD_VARIABLE,
      ...defined({ passwordFile }),
    },
    ...defined({ environment }),
  };
}

/**
 * Returns the shared log that flags and variables name; undefined if neither does. Secrets come
 * only from files and variables and appear in no message. Throws an Error for unusable values.
 */
export function readSharedLogSettings(
  env: Environment,
  flags: SharedLogFlags,
  profile: string | undefined,
): SharedLogSettings | undefined {
  const [logName, log] = given(env, ['--log', flags.log], 'PALIMPSEST_LOG');
  const [documentsName, documents] = given(env, ['--documents', flags.documents], 'PALIMPSEST_DOCUMENTS');
  const passwordFile = fileOf(given(env, ['--password-file', flags.passwordFile], 'PALIMPSEST_DATABASE_PASSWORD_FILE'));
  if (!sharesLog(profile)) {
    const stray =
      OF_LOGS.find(([key]) => flags[key] !== undefined)?.[1] ??
      (profile === undefined && log !== undefined ? logName : undefined);
    if (stray !== undefined)
      throw new Error(`${stray} requires --profile postgres or --profile kafka (PALIMPSEST_PROFILE).`);
    return undefined;
  }
  if (log === undefined) {
    const stray = OF_LOGS.find(([key]) => flags[key] !== undefined)?.[1];
    if (stray !== undefined) throw new Error(`${stray} requires --log (PALIMPSEST_LOG).`);
    return undefined;
  }
  if (profile === 'postgres') {
    const stray = OF_LOGS.find(([key, name]) => OF_KAFKA.has(name) && flags[key] !== undefined)?.[1];
    if (stray !== undefined)
      throw new Error(`${stray} requires --profile kafka: with postgres, log and documents are in one database.`);
    const { database, environment } = databaseOf(env, [logName, log], passwordFile);
    return { log: { profile, database }, ...defined({ environment }) };
  }
  if (documents === undefined) {
    throw new Error(
      '--profile kafka needs --documents postgresql://USER@HOST/DATABASE (PALIMPSEST_DOCUMENTS): Kafka keeps ' +
        'only the log.',
    );
  }
  const propertiesFile = fileOf(
    given(env, ['--kafka-properties', flags.kafkaProperties], 'PALIMPSEST_KAFKA_PROPERTIES'),
  );
  const { database, environment } = databaseOf(env, [documentsName, documents], passwordFile);
  const kafka = {
    brokers: brokersOf(log),
    topic: topicOf(flags.topic ?? variable(env, 'PALIMPSEST_TOPIC') ?? TOPIC),
    replication: flags.replication ?? replicationOf(variable(env, 'PALIMPSEST_REPLICATION') ?? String(REPLICATION)),
    create: flags.createTopic ?? false,
    ...defined({ propertiesFile }),
  };
  return { log: { profile, database, kafka }, ...defined({ environment }) };
}
