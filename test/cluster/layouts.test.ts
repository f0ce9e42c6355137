import { mkdir, mkdtemp, readdir, readFile, realpath, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { ensureNode } from '../../src/node/ensure-node.js';
import { nodeStatus } from '../../src/node/node-status.js';
import { stopNode } from '../../src/node/stop-node.js';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';
import { stdioAgent } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { until } from '../support/until.js';
import { type KafkaBroker, kafkaBroker } from './kafka-broker.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';

let folder: string;
let postgres: PostgresServer;

beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-cluster-')));
  postgres = await postgresServer(['log', 'documents']);
  await writeFile(join(folder, 'password'), `${postgres.password}\n`, { mode: 0o600 });
});

afterAll(async () => {
  await postgres?.remove();
  await rm(folder, { recursive: true, force: true });
});

/** Every file below a folder, as one text. */
async function everything(dir: string): Promise<string> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return (await Promise.all(files.map((file) => readFile(file, 'latin1')))).join('\n');
}

/** The command line of every process that this user can see. */
async function commandLines(): Promise<string> {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(join('/proc', pid, 'cmdline'), 'utf8').catch(() => '')));
  expect(lines.some((line) => line.includes('shared-log.json'))).toBe(true);
  return lines.join('\n');
}

/** The common behaviour of both layouts: two nodes over one log, each with its own data folder. */
function behaves(profile: 'postgres' | 'kafka', flags: () => readonly string[]): void {
  const [a, b] = [`${profile}-a`, `${profile}-b`];
  const data = (name: string): string => join(folder, name);
  const start = (name: string, given: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    runCli(['node', 'start', '--data', data(name), ...given], env);
  const newest = async (name: string): Promise<number> => {
    const xtdb = new XtdbClient((await ensureNode({ dataDir: data(name) })).address);
    try {
      return (await xtdb.latestCompletedTx())?.txId ?? -1;
    } finally {
      await xtdb.close();
    }
  };
  /** Waits until a node has the data of another node. */
  const reaches = async (name: string, txId: number): Promise<void> => {
    const xtdb = new XtdbClient((await ensureNode({ dataDir: data(name) })).address);
    try {
      await xtdb.awaitOutcome(txId);
    } finally {
      await xtdb.close();
    }
  };

  afterAll(async () => {
    for (const name of [a, b]) await stopNode(data(name));
  });

  test('starts two nodes with the password in a file or a variable; the data folder keeps the rest', async () => {
    const first = await start(a, ['--profile', profile, ...flags(), '--password-file', join(folder, 'password')]);
    expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining(`(${profile}) is ready`) });
    const second = await start(b, ['--profile', profile, ...flags()], {
      PALIMPSEST_DATABASE_PASSWORD: postgres.password,
    });
    expect(second).toMatchObject({ code: 0 });
    expect(await start(a, [])).toMatchObject({ code: 0, stdout: expect.stringContaining(`(${profile}) already runs`) });
    expect((await stat(join(data(a), 'shared-log.json'))).mode & 0o777).toBe(0o600);
    const [one, two] = await Promise.all([nodeStatus(data(a)), nodeStatus(data(b))]);
    expect([one, two]).toMatchObject([{ log: { reachable: true } }, { log: { reachable: true } }]);
    expect(one.running && two.running && one.log?.name === two.log?.name).toBe(true);
  });

  test('verifies a session through the other node than its writer’s, and continues it there', async () => {
    const root = join(folder, `${profile}-project`);
    await mkdir(root);
    // Three chunks of a text; the last one has characters beyond ASCII.
    const large = `${'a line of text\n'.repeat(80_000)}${'é…𝄞\n'.repeat(20_000)}`;
    await writeFile(join(root, 'large.txt'), large);
    await writeFile(join(root, 'small.txt'), 'small text\n');
    const agent = await stdioAgent(root, ['--data', data(a), '--session', profile]);
    expect(await agent.call('read', { path: 'small.txt' })).toMatchObject({ isError: false });
    expect(await agent.call('read', { path: 'large.txt' })).toMatchObject({ isError: false });
    await agent.call('context');
    await agent.close();
    await reaches(b, await newest(a));

    const verified = await runCli(['verify', profile, '--data', data(b)]);
    expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(`session   ${profile}: verified`) });
    const object = await runCli(['cat', join(root, 'large.txt'), '--session', profile, '--data', data(b)]);
    expect(object.stdout === large).toBe(true);

    const other = await stdioAgent(root, ['--data', data(b), '--session', profile]);
    expect(await other.call('write', { path: 'small.txt', content: 'other text\n' })).toMatchObject({ isError: false });
    const { text } = await other.call('context', { full: true });
    expect(text).toContain('other text');
    await other.close();
    await reaches(a, await newest(b));
    expect(await runCli(['verify', profile, '--data', data(a)])).toMatchObject({ code: 0 });
  });

  test('rebuilds a lost index from the log', async () => {
    const before = await newest(a);
    await stopNode(data(b));
    await rm(join(data(b), 'index'), { recursive: true });
    expect(await start(b, [], { PALIMPSEST_DATABASE_PASSWORD: postgres.password })).toMatchObject({ code: 0 });
    expect(await newest(b)).toBeGreaterThanOrEqual(before);
    expect(await runCli(['verify', profile, '--data', data(b)])).toMatchObject({ code: 0 });
  });

  test('refuses an index of another log, and another profile for the folder', async () => {
    await stopNode(data(b));
    expect(await start(b, ['--profile', 'rocksdb'])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/index of a node over .*--data/),
    });
    await writeFile(join(data(b), 'shared-log.json'), '{');
    const other = flags().map((word) => word.replace('/log', '/documents').replace(/^log-topic$/, 'other-topic'));
    const refused = await start(b, ['--profile', profile, ...other, '--password-file', join(folder, 'password')]);
    expect(refused).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /The log is empty, and the index in this data folder was made from one that is not/,
      ),
    });
    // Without this file, the next start would take the folder for one with its own database.
    expect(await readFile(join(data(b), 'shared-log.json'), 'utf8')).toContain(`"profile": "${profile}"`);
    expect(
      await start(b, ['--profile', profile, ...flags(), '--password-file', join(folder, 'password')]),
    ).toMatchObject({ code: 0 });
  });

  test('shows no secret in a file, log, status or command line', async () => {
    const secret = postgres.password;
    const said = [
      await everything(data(a)),
      await everything(data(b)),
      ...(await Promise.all(
        [
          ['node', 'status', '--data', data(b)],
          ['node', 'status', '--json', '--data', data(b)],
          ['doctor', '--json', '--data', data(b)],
        ].map(async (args) => (await runCli(args)).stdout),
      )),
      await commandLines(),
    ];
    for (const text of said)
      for (const form of [secret, encodeURIComponent(secret)]) expect(text.includes(form)).toBe(false);
    expect(said.join('\n').includes(`owner@127.0.0.1:${postgres.port}/`)).toBe(true);
  });

  test('still reads without the database, reports the outage, and accepts writes again by itself', async () => {
    await postgres.kill();
    const log = async () => {
      const status = await nodeStatus(data(a));
      return status.running ? status.log?.reachable : undefined;
    };
    if (profile === 'postgres') await until(log, (reachable) => reachable === false);
    const away = await runCli(['node', 'status', '--data', data(a)]);
    if (profile === 'postgres') expect(away.stdout).toMatch(/log .*CANNOT BE REACHED/);
    expect(await runCli(['verify', profile, '--data', data(a)])).toMatchObject({ code: 0 });
    await postgres.start();
    await until(log, (reachable) => reachable === true);
    const root = join(folder, `${profile}-project`);
    const agent = await stdioAgent(root, ['--data', data(a), '--session', `${profile}-later`]);
    expect(await agent.call('read', { path: 'small.txt' })).toMatchObject({ isError: false });
    await agent.call('context');
    await agent.close();
    await reaches(b, await newest(a));
    expect(await runCli(['verify', `${profile}-later`, '--data', data(b)])).toMatchObject({ code: 0 });
  });
}

describe('log and documents in PostgreSQL', () => {
  behaves('postgres', () => ['--log', `postgresql://${postgres.user}@127.0.0.1:${postgres.port}/log`]);
});

describe('the log in Kafka, the documents in PostgreSQL', () => {
  let kafka: KafkaBroker;
  beforeAll(async () => {
    kafka = await kafkaBroker();
  });
  afterAll(() => kafka?.remove());

  behaves('kafka', () => [
    '--log',
    `127.0.0.1:${kafka.port}`,
    '--documents',
    `postgresql://${postgres.user}@127.0.0.1:${postgres.port}/documents`,
    '--topic',
    'log-topic',
    '--replication',
    '1',
    '--create-topic',
  ]);
});
