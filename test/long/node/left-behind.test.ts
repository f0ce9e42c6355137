import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { adoptableJournals, inspectJournals } from '../../../src/journal/journals.js';
import { nodeStatus } from '../../../src/node/node-status.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { stdioAgent } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';
import { until } from '../../support/until.js';

const CALLS = 10;

let root: string;
let data: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-left-')));
  data = join(root, '.data');
});
afterEach(async () => {
  await stopNode(data);
  await rm(root, { recursive: true, force: true });
});

/** Runs an agent and kills it once its calls are acknowledged, while its node still starts. */
async function shortRun(): Promise<void> {
  const agent = await stdioAgent(root, ['--data', data, '--profile', 'rocksdb', '--log-level', 'silent']);
  await until(
    () => nodeStatus(data),
    ({ running }) => running,
  );
  for (let i = 0; i < CALLS; i++) {
    expect(await agent.call('write', { path: `${i}.txt`, content: `text ${i}` })).toMatchObject({ isError: false });
  }
  process.kill((agent.transport as StdioClientTransport).pid ?? 0, 'SIGKILL');
  await agent.close();
  expect(await nodeStatus(data)).toMatchObject({ running: true, phase: 'starting' });
}

const pending = async (): Promise<number> =>
  (await inspectJournals(data)).reduce((sum, journal) => sum + journal.pending, 0);

const ask = async (...question: readonly string[]) =>
  JSON.parse((await runCli([...question, '--data', data, '--json'])).stdout);

/** Expects exactly one session, with every call. */
async function expectWhole(): Promise<void> {
  const { sessions, notes } = await ask('sessions');
  expect([sessions, notes]).toEqual([[expect.anything()], []]);
  const { turns } = await ask('log', sessions[0].id);
  expect(turns.flatMap(({ calls }: { readonly calls: readonly unknown[] }) => calls)).toHaveLength(CALLS);
}

describe('an agent killed while its node starts', () => {
  test('leaves a whole session that readers see at once', async () => {
    await shortRun();
    await expectWhole();
  });

  test('has its steps delivered without a reader, and leaves no process behind', async () => {
    await shortRun();
    expect(await pending()).toBeGreaterThanOrEqual(CALLS);
    await until(pending, (count) => count === 0);
    await until(
      () => adoptableJournals(data),
      (left) => left.length === 0,
    );
    await until(
      () => nodeStatus(data),
      (status) => status.running && status.users === 0,
    );
    await expectWhole();
  });
});
