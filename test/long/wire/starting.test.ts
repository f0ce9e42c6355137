import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { CONFIGS, privateFolder, runFront, startFront } from '../../support/front-process.js';
import { readEdn, Wire, type WireAnswer } from '../../support/wire.js';

/**
 * A node that lost its index is ready once the index is complete, and reports its progress until
 * then.
 */
const TRANSACTIONS = 1_000;
let dir: string;
let remove: () => Promise<void>;
let wire: Wire;

const flags = (): string[] => ['--config', CONFIGS.rocksdb, '--data', dir, '--socket', join(dir, 's')];

beforeAll(async () => {
  ({ dir, remove } = await privateFolder());
  wire = new Wire({ socketPath: join(dir, 's') });
  const front = await startFront(flags());
  for (let at = 0; at < TRANSACTIONS; at += 50) {
    const submitted = Array.from({ length: 50 }, (_, n) => {
      const text = `${at + n} ${'words of a turn '.repeat(20)}`;
      return wire.post(
        '/submit-tx',
        `{:tx-ops [[:xtdb.api/put {:xt/id "d${at + n}" :n ${at + n} :type "step" :words ["${text}" "more"]}]]}`,
      );
    });
    for (const answer of await Promise.all(submitted)) expect(answer.status).toBe(202);
  }
  expect((await wire.get('/sync', { params: { timeout: 60_000 } })).status).toBe(200);
  await front.stop();
}, 240_000);
afterAll(async () => {
  await wire.close();
  await remove();
});

const all = (): Promise<WireAnswer> => wire.post('/query', '{:query {:find [(count e)] :where [[e :n]]}}');

test('no query is answered from an incomplete index', async () => {
  await rm(join(dir, 'index'), { recursive: true });
  const run = await runFront(flags());
  let isReady = false;
  void run.ready.then(() => {
    isReady = true;
  });
  const behind: { readonly indexed: number; readonly of: number }[] = [];
  let refused: WireAnswer | undefined;
  try {
    while (!isReady) {
      const status = await wire.get('/status').catch(() => undefined);
      if (status?.status === 503) {
        expect(status.headers['retry-after']).toBe('1');
        const said = readEdn(status.text) as Record<string, unknown>;
        expect(said).toMatchObject({ 'xtdb.version/version': '1.24.3' });
        behind.push(said['front/starting'] as { readonly indexed: number; readonly of: number });
        const query = await all();
        if (query.status === 503) refused = query;
        else expect(readEdn(query.text)).toEqual([[TRANSACTIONS]]);
      }
      await setTimeout(10);
    }
    expect(readEdn((await all()).text)).toEqual([[TRANSACTIONS]]);
    expect((await wire.get('/status')).status).toBe(200);
  } finally {
    run.process.kill('SIGTERM');
  }
  const { code, stdout } = await run.ended;
  expect(code).toBe(0);
  expect(behind.length).toBeGreaterThan(0);
  expect(behind.every(({ indexed, of }) => of === TRANSACTIONS && indexed < of)).toBe(true);
  expect(refused?.headers['retry-after']).toBe('1');
  expect(refused?.text).toMatch(/starting, \d+ of 1000 transactions indexed; try again/);
  const [first, ...others] = stdout.trim().split('\n');
  expect(first).toMatch(/^\{"starting":true,"indexed":\d+,"of":1000\}$/);
  expect(others.at(-1)).toMatch(/^\{"ready":true/);
}, 120_000);

test('a node stopped during its start ends cleanly', async () => {
  await rm(join(dir, 'index'), { recursive: true });
  const run = await runFront(flags());
  const deadline = Date.now() + 60_000;
  let status: WireAnswer | undefined;
  while (status?.status !== 503 && Date.now() < deadline) status = await wire.get('/status').catch(() => undefined);
  expect(status?.status).toBe(503);
  run.process.kill('SIGTERM');
  const { code, stdout } = await run.ended;
  expect([code, stdout.includes('"ready":true')]).toEqual([0, false]);
}, 90_000);
