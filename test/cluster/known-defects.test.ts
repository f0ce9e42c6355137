import { mkdir, mkdtemp, readdir, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { sym } from '../../src/edn/values.js';
import { nodeStatus } from '../../src/node/node-status.js';
import { stopNode } from '../../src/node/stop-node.js';
import { parseNodeUrl } from '../../src/xtdb/address.js';
import { pull, triple } from '../../src/xtdb/datalog.js';
import { probeHealth } from '../../src/xtdb/node-list.js';
import { XtdbClient } from '../../src/xtdb/xtdb-client.js';
import { killNow } from '../chaos/kill.js';
import { stdioAgent } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { until } from '../support/until.js';
import { type CuttableRelay, cuttableRelay } from './cuttable-relay.js';
import { type PostgresServer, postgresServer } from './postgres-server.js';
import { sharedLogOn, startSharedNode } from './shared-node.js';

/** Known defects of XTDB 1.x over shared stores, provoked on purpose. */
let folder: string;
let postgres: PostgresServer;
/** Node b's separate connection to the database. */
let relay: CuttableRelay;
let socketA: string;
let socketB: string;
const data = (name: string): string => join(folder, name);

const log = (name: 'a' | 'b') =>
  sharedLogOn({
    postgres: name === 'a' ? postgres : { ...postgres, port: relay.port },
    passwordFile: join(folder, 'password'),
  });

beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-known-')));
  postgres = await postgresServer(['log']);
  relay = await cuttableRelay(postgres.port);
  await writeFile(join(folder, 'password'), postgres.password);
  await mkdir(data('project'));
  socketA = await startSharedNode(data('a'), log('a'));
  socketB = await startSharedNode(data('b'), log('b'));
});
afterEach(async () => {
  relay.mend();
  await Promise.all(['a', 'b'].map((name) => stopNode(data(name))));
  relay.close();
  await postgres.remove();
  await rm(folder, { recursive: true, force: true });
});

/**
 * Returns the reason why a node's indexer stopped, as `node status` shows it. The JVM with this
 * indexer may still run, or was ended because of it.
 */
async function reasonOf(name: string): Promise<string | undefined> {
  const status = await nodeStatus(data(name));
  return status.running ? (status.ingesterError ?? status.frontExit?.reason) : undefined;
}

test('missing documents stop the indexer of one node with a reason; clients use the other meanwhile', async () => {
  const urls = { XTDB_URL: `unix:${socketB},unix:${socketA}` };
  const agent = await stdioAgent(data('project'), ['--data', data('client'), '--session', 'known'], urls);
  const writer = new XtdbClient({ kind: 'unix', socketPath: socketA });
  try {
    const works = async (content: string): Promise<void> => {
      expect(await agent.call('write', { path: 'a.txt', content })).toMatchObject({ isError: false });
      expect(await agent.call('read', { path: 'a.txt' })).toMatchObject({ isError: false });
      expect((await agent.call('context', { full: true })).text).toContain(content);
    };
    await works('before\n');
    relay.cut();
    const { receipt, outcome } = await writer.execute([{ op: 'put', doc: { 'xt/id': 'lost', type: 'of node b' } }]);
    expect(outcome).toBe('committed');
    const newest = "event_offset = (SELECT max(event_offset) FROM tx_events WHERE topic = 'docs')";
    await postgres.execute('log', `UPDATE tx_events SET topic = 'lost' WHERE ${newest}`);
    const from = performance.now();
    relay.mend();
    const reason = await until(
      () => reasonOf('b'),
      (found) => found !== undefined,
    );
    process.stderr.write(`a stopped indexer was named after ${Math.round(performance.now() - from)} ms\n`);
    expect(reason).toBe('documents-missing: the document store lacks 1 that the log names');
    // The client of b continues, through a.
    for (const content of ['after one\n', 'after two\n']) await works(content);
    expect(await runCli(['doctor', '--data', data('b')])).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('documents-missing'),
    });
    // After each restart the indexer stops there again, and the node reports that while it runs.
    const probed = await until(
      () => probeHealth(parseNodeUrl(`unix:${socketB}`)),
      ({ health }) => health === 'failed',
    );
    expect(probed.why).toMatch(/^its indexer has stopped \(documents-missing: /);
    const looked = await until(
      () => runCli(['doctor', '--json', '--data', data('client')], urls),
      ({ stdout }) => stdout.includes('documents-missing'),
    );
    const findings: readonly { readonly code: string; readonly detail?: string }[] = JSON.parse(looked.stdout).findings;
    expect(findings.find(({ code }) => code === 'documents-missing')?.detail).toContain(socketB);
    await postgres.execute('log', "UPDATE tx_events SET topic = 'docs' WHERE topic = 'lost'");
    await until(
      () => probeHealth(parseNodeUrl(`unix:${socketB}`)),
      ({ health }) => health === 'ready',
    );
    const reader = new XtdbClient({ kind: 'unix', socketPath: socketB });
    expect(await (await reader.db({ txId: receipt.txId })).entity('lost')).toMatchObject({ type: 'of node b' });
    await reader.close();
  } finally {
    await Promise.all([agent.close(), writer.close()]);
  }
  expect(await runCli(['verify', 'known', '--data', data('client')], { XTDB_URL: `unix:${socketB}` })).toMatchObject({
    code: 0,
  });
});

test('many concurrent submissions of the same documents through both nodes do not deadlock', async () => {
  const clients = [socketA, socketB].flatMap((socketPath) =>
    Array.from({ length: 4 }, () => new XtdbClient({ kind: 'unix', socketPath })),
  );
  const shared = Array.from({ length: 6 }, (_, i) => ({ 'xt/id': `shared-${i}`, type: 'the same for all' }));
  try {
    const outcomes = await Promise.all(
      clients.map(async (client, who) => {
        const made: string[] = [];
        // The database's rows are locked in the order in which each transaction names them.
        const turned = who % 2 === 0 ? shared : shared.toReversed();
        for (let i = 0; i < 40; i++) {
          const ops = [{ 'xt/id': `own-${who}-${i}`, type: 'own' }, ...turned].map((doc) => ({
            op: 'put' as const,
            doc,
          }));
          made.push((await client.execute(ops)).outcome);
        }
        return made;
      }),
    );
    expect(outcomes.flat()).toEqual(Array.from({ length: 320 }, () => 'committed'));
    for (const client of clients) {
      const db = await client.db();
      const own = await Promise.all(clients.flatMap((_, who) => [0, 39].map((i) => db.entity(`own-${who}-${i}`))));
      expect(own.every((doc) => doc !== undefined)).toBe(true);
    }
  } finally {
    await Promise.all(clients.map((client) => client.close()));
  }
});

test('reports an unavailable document as an error, never as absent', async () => {
  const writer = new XtdbClient({ kind: 'unix', socketPath: socketA });
  const ids = Array.from({ length: 20 }, (_, i) => `fetched-${i}`);
  const { receipt } = await writer.execute(
    ids.map((id) => ({ op: 'put', doc: { 'xt/id': id, type: `the type of ${id}` } })),
  );
  await writer.close();
  const before = new XtdbClient({ kind: 'unix', socketPath: socketB });
  await before.awaitOutcome(receipt.txId);
  await before.close();
  // After the restart it has its index, and no document in memory.
  await stopNode(data('b'));
  socketB = await startSharedNode(data('b'), log('b'));
  const reader = new XtdbClient({ kind: 'unix', socketPath: socketB }, { requestTimeoutMs: 45_000 });
  const [e, id] = [sym('?e'), sym('?id')];
  try {
    const db = await reader.db();
    await postgres.kill();
    const [entity, found] = await Promise.allSettled([
      db.entity('fetched-3'),
      db.query({ find: [pull(e)], in: [id], where: [triple(e, 'xt/id', id)] }, ['fetched-4']),
    ]);
    // The errors are those of an unreachable node: a client then continues with the data that it
    // has.
    const away = { status: 'rejected', reason: { code: expect.stringMatching(/^(?:unreachable|timeout)$/) } };
    expect([entity, found]).toMatchObject([away, away]);
    await postgres.start();
    const after = await until(
      () => db.entity('fetched-3').catch(() => undefined),
      (document) => document !== undefined,
    );
    expect(after).toMatchObject({ type: 'the type of fetched-3' });
  } finally {
    await reader.close();
  }
});

test('begins again with the same result after a kill during a restore of checkpoint or index', async () => {
  const writer = new XtdbClient({ kind: 'unix', socketPath: socketA });
  let newest = -1;
  try {
    for (let i = 0; i < 60; i++)
      newest = (await writer.submit([{ op: 'put', doc: { 'xt/id': `restored-${i % 7}`, type: `at ${i}` } }])).txId;
    await writer.awaitOutcome(newest);
    await mkdir(data('checkpoints'));
    expect(await runCli(['node', 'checkpoint', data('checkpoints'), '--data', data('a')])).toMatchObject({ code: 0 });
    for (let i = 60; i < 120; i++)
      newest = (await writer.submit([{ op: 'put', doc: { 'xt/id': `restored-${i % 7}`, type: `at ${i}` } }])).txId;
    await writer.awaitOutcome(newest);
  } finally {
    await writer.close();
  }
  const url = `postgresql://${postgres.user}@127.0.0.1:${postgres.port}/log`;
  const start = async () => {
    const names = await readdir(data('c')).catch((): string[] => []);
    const flags = [
      '--profile',
      'postgres',
      '--log',
      url,
      '--password-file',
      join(folder, 'password'),
      '--data',
      data('c'),
    ];
    return runCli(['node', 'start', ...flags, ...(names.includes('index') ? [] : ['--restore', data('checkpoints')])]);
  };
  for (let i = 0; i < 3; i++) {
    const started = start();
    await until(
      async () => (await nodeStatus(data('c'))).running,
      (isRunning) => isRunning,
    );
    await killNow(data('c'), () => false, 'supervisor+jvm');
    await started;
  }
  expect(await start()).toMatchObject({ code: 0 });
  try {
    const [here, there] = await Promise.all(
      [data('a'), data('c')].map(async (dataDir) => {
        const status = await nodeStatus(dataDir);
        if (!status.running || status.address?.kind !== 'unix') throw new Error('no node runs');
        const client = new XtdbClient({ kind: 'unix', socketPath: status.address.socketPath });
        const db = await client.db({ txId: newest });
        const found = await Promise.all(Array.from({ length: 7 }, (_, i) => db.entity(`restored-${i}`)));
        await client.close();
        return found;
      }),
    );
    expect(there).toEqual(here);
    expect(here?.every((doc) => doc !== undefined)).toBe(true);
  } finally {
    await stopNode(data('c'));
  }
});
