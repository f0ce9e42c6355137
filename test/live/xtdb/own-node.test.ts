import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { list, sym } from '../../../src/edn/values.js';
import { ensureNode } from '../../../src/node/ensure-node.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { pull, triple } from '../../../src/xtdb/datalog.js';
import type { DbSnapshot } from '../../../src/xtdb/db-snapshot.js';
import { XtdbError } from '../../../src/xtdb/errors.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';

let dataDir: string;
let client: XtdbClient;
let pid = 0;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-xtdb-'));
  client = new XtdbClient(async () => {
    const handle = await ensureNode({ dataDir, profile: 'memory', onExit: 'leave' });
    pid = handle.pid;
    return handle.address;
  });
});
afterAll(async () => {
  await client.close();
  await stopNode(dataDir);
  await rm(dataDir, { recursive: true, force: true });
});

const e = sym('?e');
const expectNothing = async (db: DbSnapshot): Promise<void> => {
  expect(db.basis.txId).toBeUndefined();
  expect(await db.entity('first')).toBeUndefined();
  expect(await db.entityTx('first')).toBeUndefined();
  expect(await db.entities(['first'])).toEqual(new Map());
  expect(await db.history('first', { withDocs: true })).toEqual([]);
  expect(await db.query({ find: [e, pull(e)], where: [triple(e, 'xt/id')] })).toEqual([]);
  expect(await db.query({ find: [list(sym('count'), e)], where: [triple(e, 'xt/id')] })).toEqual([]);
};

// The cases follow one node through its life in this order, because each start of a JVM costs
// seconds.
describe('a node of one’s own', () => {
  test('starts with the first request; empty, it has no transactions and nothing to read', async () => {
    expect(await client.latestCompletedTx()).toBeUndefined();
    await expectNothing(await client.db());
  });

  test('never shows a transaction to a snapshot from before the first one, at any valid time', async () => {
    const before = await client.db();
    const doc = { 'xt/id': 'first', seq: 1 };
    await client.execute([{ op: 'put', doc, validTime: new Date(0) }]);
    await expectNothing(before);
    expect(await (await client.db()).entity('first')).toEqual(doc);
  });

  test('reports being killed during a submission, and the same client continues with its successor', async () => {
    const docs = Array.from({ length: 5_000 }, (_, n) => ({ 'xt/id': `k-${n}`, text: 'x'.repeat(2_000) }));
    const submitting = client.submit(docs.map((doc) => ({ op: 'put', doc }) as const)).catch((error: unknown) => error);
    await client.status();
    process.kill(pid, 'SIGKILL');
    const failure = await submitting;
    expect(failure).toBeInstanceOf(XtdbError);
    expect(failure).toMatchObject({ code: 'unreachable', outcomeUnknown: true, txId: undefined });
    const killed = pid;
    expect(await client.status()).toMatchObject({ ingesterFailed: false });
    expect(pid).not.toBe(killed);
  });
});
