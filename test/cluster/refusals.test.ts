import { once } from 'node:events';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { type AddressInfo, createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import type { SharedLog } from '../../src/node/shared-log.js';
import { CONFIGS, failToStart, privateFolder, type RunningFront, startFront } from '../support/front-process.js';
import { until } from '../support/until.js';
import { submitAndWait, Wire } from '../support/wire.js';
import { freePort } from './free-port.js';
import { type KafkaBroker, kafkaBroker } from './kafka-broker.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';

/**
 * The messages of nodes that cannot use a log, on real servers: a code and a reason, never a
 * secret. The node then writes nothing.
 */
let folder: string;
let postgres: PostgresServer;
let kafka: KafkaBroker;
let dir: string;
let remove: () => Promise<void>;
let front: RunningFront | undefined;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-refusals-')));
  await writeFile(join(folder, 'wrong'), 'wrong-password');
  [postgres, kafka] = await Promise.all([postgresServer(['one', 'two', 'three']), kafkaBroker()]);
  await writeFile(join(folder, 'right'), postgres.password);
});
afterAll(async () => {
  await Promise.all([postgres?.remove(), kafka?.remove()]);
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  ({ dir, remove } = await privateFolder());
});
afterEach(async () => {
  await front?.stop();
  front = undefined;
  await remove();
});

type Database = SharedLog['database'];
type Kafka = Extract<SharedLog, { profile: 'kafka' }>['kafka'];

const database = (change: Partial<Database> = {}): Database => ({
  hosts: [{ host: '127.0.0.1', port: postgres.port }],
  name: 'one',
  user: postgres.user,
  parameters: {},
  passwordVariable: 'NONE_OF_IT',
  passwordFile: join(folder, 'right'),
  ...change,
});

const broker = (change: Partial<Kafka> = {}): Kafka => ({
  brokers: [`127.0.0.1:${kafka.port}`],
  topic: 'refusals',
  replication: 1,
  create: false,
  ...change,
});

/** The flags of a node over a log. */
async function flagsOf(log: {
  readonly database: Database;
  readonly kafka?: Kafka;
  readonly format?: number;
}): Promise<readonly string[]> {
  const settings = join(dir, 'settings.json');
  await writeFile(settings, JSON.stringify({ format: 2, ...log }));
  const config = log.kafka === undefined ? CONFIGS.postgres : CONFIGS.kafka;
  return ['--config', config, '--settings', settings, '--data', dir, '--socket', join(dir, 's')];
}

async function refused(log: {
  readonly database: Database;
  readonly kafka?: Kafka;
  readonly format?: number;
}): Promise<string> {
  const [code, line] = await failToStart(await flagsOf(log));
  expect(code).toBe(70);
  expect(line).not.toContain(postgres.password);
  expect(line).not.toContain('wrong-password');
  return line;
}

/**
 * A relay to a server that disappears for good. `isOver` gets the number of connections and the
 * data sent so far.
 */
async function dyingServer(port: number, isOver: (connections: number, sent: string) => boolean) {
  let connections = 0;
  let isAway = false;
  const sockets = new Set<Socket>();
  const end = (): void => {
    isAway = true;
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((incoming) => {
    const onward = createConnection({ port, host: '127.0.0.1' });
    let sent = '';
    connections++;
    for (const [from, to] of [[incoming, onward] as const, [onward, incoming] as const]) {
      sockets.add(from);
      from.on('error', () => to.destroy()).on('close', () => to.destroy());
    }
    incoming.on('data', (bytes) => {
      sent += bytes.toString('latin1');
      if (isOver(connections, sent)) end();
      else onward.write(bytes);
    });
    onward.on('data', (bytes) => incoming.write(bytes));
    if (isAway || isOver(connections, sent)) end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = (): void => {
    end();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

describe('PostgreSQL', () => {
  test('no listener', async () => {
    const port = await freePort();
    const line = await refused({ database: database({ hosts: [{ host: '127.0.0.1', port }] }) });
    expect(line).toMatch(new RegExp(`front: log-unreachable: .*owner@127.0.0.1:${port}/one.*refused`));
  });

  test.each([
    // In the order of a start: the check of the server, the pool, the check of the log.
    ['before the pool has a connection', (connections: number) => connections > 1, /owner@/],
    [
      'while the log is looked at',
      (_: number, sent: string) => /SELECT event_offset, topic FROM tx_events/i.test(sent),
      /can no longer be reached/,
    ],
  ])('a server that leaves %s', async (_, isOver, said) => {
    const server = await dyingServer(postgres.port, isOver);
    try {
      const line = await refused({ database: database({ hosts: [{ host: '127.0.0.1', port: server.port }] }) });
      expect(line).toMatch(/front: log-unreachable: /);
      expect(line).toMatch(said);
    } finally {
      server.close();
    }
  });

  test('an unknown host name', async () => {
    const line = await refused({ database: database({ hosts: [{ host: 'no-such-host.invalid', port: 5432 }] }) });
    expect(line).toMatch(/front: log-unreachable: .*no-such-host\.invalid/);
  });

  test('a wrong or missing password, an unknown user, a missing password file', async () => {
    expect(await refused({ database: database({ passwordFile: join(folder, 'wrong') }) })).toMatch(
      /front: log-denied: .*owner@/,
    );
    expect(await refused({ database: { ...database(), passwordFile: undefined } })).toMatch(
      /front: log-denied: .*password/,
    );
    expect(await refused({ database: database({ user: 'nobody' }) })).toMatch(/front: log-denied: .*nobody@/);
    expect(await refused({ database: database({ passwordFile: join(folder, 'gone') }) })).toMatch(
      /front: log-denied: .*gone.*cannot be read/,
    );
  });

  test('a missing database', async () => {
    expect(await refused({ database: database({ name: 'none' }) })).toMatch(
      /front: log-missing: .*"none" does not exist/,
    );
  });

  test('a version that is too old', async () => {
    const old = await postgresServer(['one'], { age: 'old' });
    try {
      const passwordFile = join(dir, 'password');
      await writeFile(passwordFile, old.password);
      const place = database({ hosts: [{ host: '127.0.0.1', port: old.port }], passwordFile });
      expect(await refused({ database: place })).toMatch(/front: log-unfit: PostgreSQL 12\.22.* too old: version 13/);
    } finally {
      await old.remove();
    }
  });

  test('a server without TLS where it is required', async () => {
    expect(await refused({ database: database({ parameters: { sslmode: 'require' } }) })).toMatch(
      /front: log-unreachable: .*SSL/,
    );
  });
});

describe('Kafka', () => {
  test('no listener', async () => {
    const brokers = [`127.0.0.1:${await freePort()}`];
    expect(await refused({ database: database({ name: 'two' }), kafka: broker({ brokers }) })).toMatch(
      /front: log-unreachable: Kafka .*127\.0\.0\.1/,
    );
  });

  test('a missing topic, and an impossible replication factor', async () => {
    expect(await refused({ database: database({ name: 'two' }), kafka: broker() })).toMatch(
      /front: log-missing: There is no topic refusals/,
    );
    const impossible = broker({ create: true, replication: 3 });
    expect(await refused({ database: database({ name: 'two' }), kafka: impossible })).toMatch(
      /front: log-unfit: .*refusals 3 times/,
    );
  });

  test('a topic that would lose or reorder transactions', async () => {
    await kafka.makeTopic('compacted', {
      partitions: 1,
      settings: ['cleanup.policy=compact', 'message.timestamp.type=CreateTime'],
    });
    const compacted = await refused({ database: database({ name: 'two' }), kafka: broker({ topic: 'compacted' }) });
    expect(compacted).toMatch(/front: log-unfit: The topic compacted .*cleanup\.policy=compact/);
    expect(compacted).toContain('message.timestamp.type=CreateTime');
    await kafka.makeTopic('wide', { partitions: 2 });
    expect(await refused({ database: database({ name: 'two' }), kafka: broker({ topic: 'wide' }) })).toMatch(
      /front: log-unfit: .*2 partitions/,
    );
  });

  test('a wrong password for the broker; the right one comes from a file', async () => {
    const properties = async (password: string): Promise<string> => {
      const file = join(dir, 'client.properties');
      const user = `username="node" password="${password}"`;
      const login = `org.apache.kafka.common.security.plain.PlainLoginModule required ${user};`;
      await writeFile(file, `security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config=${login}\n`, {
        mode: 0o600,
      });
      return file;
    };
    const place = broker({ brokers: [`127.0.0.1:${kafka.saslPort}`], topic: 'sasl', create: true });
    const wrong = { ...place, propertiesFile: await properties('wrong-password') };
    expect(await refused({ database: database({ name: 'two' }), kafka: wrong })).toMatch(
      /front: log-denied: Kafka at .*does not let/,
    );
    const right = { ...place, propertiesFile: await properties('right') };
    front = await startFront(await flagsOf({ database: database({ name: 'two' }), kafka: right }));
  });
});

describe('a record of Kafka', () => {
  test('holds a transaction of 8,000 operations; a larger one is refused, and the next one works', async () => {
    front = await startFront(
      await flagsOf({ database: database({ name: 'two' }), kafka: broker({ topic: 'large', create: true }) }),
    );
    const wire = new Wire({ socketPath: join(dir, 's') });
    try {
      const matches = (count: number): string =>
        `{:tx-ops [${Array.from({ length: count }, (_, i) => `[:xtdb.api/match "none-${i}" nil]`).join(' ')}]}`;
      expect(await wire.post('/submit-tx', matches(8_000))).toMatchObject({ status: 202 });
      const refusal = await wire.post('/submit-tx', matches(40_000));
      expect(refusal).toMatchObject({ status: 413 });
      expect(refusal.text).toContain('40000 operations');
      expect(await wire.post('/submit-tx', matches(1))).toMatchObject({ status: 202 });
    } finally {
      await wire.close();
    }
  });
});

describe('a log lost while a node runs', () => {
  test('is noticed and named; the node still answers from its index and begins no new log', async () => {
    const log = { database: database({ name: 'two' }), kafka: broker({ topic: 'lost', create: true }) };
    const flags = await flagsOf(log);
    front = await startFront(flags);
    const wire = new Wire({ socketPath: join(dir, 's') });
    try {
      await submitAndWait(wire, '[:xtdb.api/put {:xt/id "kept" :n 1}]');
      await submitAndWait(wire, '[:xtdb.api/put {:xt/id "kept" :n 2}]');
      await kafka.removeTopic('lost');
      await kafka.makeTopic('lost', {
        partitions: 1,
        settings: ['message.timestamp.type=LogAppendTime', 'retention.ms=-1'],
      });
      const failed = async () => (await wire.get('/status', { accept: 'application/json' })).text;
      expect(await until(failed, (text) => text.includes('"ingesterFailed?":true'))).toContain('"log":');
      expect(await wire.get('/entity', { params: { eid: 'kept' } })).toMatchObject({
        status: 200,
        text: expect.stringContaining(':n 2'),
      });
    } finally {
      await wire.close();
    }
    await front.stop();
    front = undefined;
    expect(await refused(log)).toMatch(/front: log-mismatch: The log is empty, and the index/);
  });
});

describe('the format of a log', () => {
  test('is refused if newer or older, like the documents of another log', async () => {
    const topic = broker({ topic: 'formats', create: true });
    front = await startFront(await flagsOf({ database: database({ name: 'three' }), kafka: topic, format: 7 }));
    await front.stop();
    front = undefined;
    expect(await refused({ database: database({ name: 'three' }), kafka: topic })).toMatch(
      /front: newer-data: The log has format 7.*up to 2/,
    );
    expect(await refused({ database: database({ name: 'three' }), kafka: topic, format: 8 })).toMatch(
      /front: older-data: The log has format 7/,
    );
    expect(await refused({ database: database({ name: 'one' }), kafka: topic, format: 7 })).toMatch(
      /front: log-mismatch: The documents of the log/,
    );
  });
});
