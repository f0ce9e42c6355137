import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { findJava } from '../../src/node/java.js';
import { builtFront } from '../support/front-process.js';
import { freePort } from './free-port.js';
import { serverJars, untilListening } from './postgres-server.js';

const run = promisify(execFile);

/** A Kafka broker for one test run. It is its own controller. */
export interface KafkaBroker {
  /** Accepts clients without a login. */
  readonly port: number;
  /** Accepts the user `node` with the password `right`, by SASL/PLAIN. */
  readonly saslPort: number;
  /** The folder of its files; the records of its topics are in `log`. */
  readonly dir: string;
  /** Makes a topic with its own settings, `key=value`. */
  makeTopic(
    topic: string,
    options: { readonly partitions: number; readonly settings?: readonly string[] },
  ): Promise<void>;
  removeTopic(topic: string): Promise<void>;
  start(): Promise<void>;
  kill(): Promise<void>;
  remove(): Promise<void>;
}

/** Kafka accepts any base64 text of 16 bytes. */
const CLUSTER_ID = 'AAAAAAAAAAAAAAAAAAAAAQ';
const PLAIN = 'org.apache.kafka.common.security.plain.PlainLoginModule';

const propertiesText = (properties: Readonly<Record<string, string>>): string =>
  Object.entries(properties)
    .map(([key, value]) => `${key}=${value}\n`)
    .join('');

/**
 * Makes and starts a broker with its own folder. `reachedAt` returns the port that the broker
 * advertises instead of its own.
 */
export async function kafkaBroker(
  reachedAt: (port: number) => Promise<number> = async (port) => port,
): Promise<KafkaBroker> {
  const java = await findJava({});
  const dir = await mkdtemp(join(tmpdir(), 'palimpsest-kafka-'));
  const [port, saslPort, controller] = [await freePort(), await freePort(), await freePort()];
  const file = join(dir, 'server.properties');
  await writeFile(
    file,
    propertiesText({
      'process.roles': 'broker,controller',
      'node.id': '1',
      'controller.quorum.bootstrap.servers': `127.0.0.1:${controller}`,
      listeners:
        `PLAINTEXT://127.0.0.1:${port},SASL_PLAINTEXT://127.0.0.1:${saslPort},` +
        `CONTROLLER://127.0.0.1:${controller}`,
      'advertised.listeners': `PLAINTEXT://127.0.0.1:${await reachedAt(port)},SASL_PLAINTEXT://127.0.0.1:${saslPort}`,
      'controller.listener.names': 'CONTROLLER',
      'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT',
      'inter.broker.listener.name': 'PLAINTEXT',
      'sasl.enabled.mechanisms': 'PLAIN',
      'listener.name.sasl_plaintext.plain.sasl.jaas.config': `${PLAIN} required user_node="right";`,
      'log.dirs': join(dir, 'log'),
      'auto.create.topics.enable': 'false',
      'offsets.topic.replication.factor': '1',
    }),
  );
  const flags = ['-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-cp', serverJars().join(delimiter)];
  await run(java.command, [
    ...flags,
    'kafka.tools.StorageTool',
    'format',
    '--standalone',
    '-t',
    CLUSTER_ID,
    '-c',
    file,
  ]);
  let broker: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (broker === undefined || broker.exitCode !== null || broker.signalCode !== null) return;
    const ended = once(broker, 'exit');
    broker.kill('SIGKILL');
    await ended;
  };
  const start = async (): Promise<void> => {
    broker = spawn(java.command, [...flags, 'kafka.Kafka', file], { stdio: 'ignore', cwd: dir });
    await untilListening(port, broker);
  };
  await start();
  const script = async (verb: string, words: readonly string[]): Promise<void> => {
    const { installation } = await builtFront(true);
    const main = ['clojure.main', join(import.meta.dirname, 'topic.clj'), verb, `127.0.0.1:${port}`, ...words];
    await run(java.command, ['-XX:TieredStopAtLevel=1', '-cp', installation.jars.join(delimiter), ...main]);
  };
  return {
    port,
    saslPort,
    dir,
    makeTopic: (topic, { partitions, settings = [] }) => script('make', [topic, String(partitions), ...settings]),
    removeTopic: (topic) => script('remove', [topic]),
    start,
    kill,
    remove: async () => {
      await kill();
      await rm(dir, { recursive: true, force: true });
    },
  };
}
