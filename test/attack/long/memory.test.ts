import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import type { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { type Agent, stdioAgent, temporaryRoot } from '../../support/mcp-clients.js';
import { residentMiB } from '../../support/process-memory.js';
import { until } from '../../support/until.js';

let folder: Awaited<ReturnType<typeof temporaryRoot>>;
let data: string;
let agent: Agent;
const memory = (): number => residentMiB((agent.transport as StdioClientTransport).pid ?? 0);

beforeEach(async () => {
  folder = await temporaryRoot();
  data = join(folder.root, '.data');
  await mkdir(join(folder.root, 'src'));
  for (let i = 0; i < 50; i++)
    await writeFile(join(folder.root, 'src', `f${i}.txt`), `file ${i}\n${'some line of text\n'.repeat(40)}`);
  agent = await stdioAgent(folder.root, ['--data', data, '--profile', 'rocksdb']);
});

afterEach(async () => {
  await agent.close();
  await stopNode(data);
  await folder.remove();
});

const read = async (i: number, session: string): Promise<void> => {
  const { isError, text } = await agent.call('read', { path: `src/f${i % 50}.txt`, session });
  if (isError) throw new Error(text);
};

test('a server takes at most 150 MiB for 10,000 calls in one turn', async () => {
  let most = 0;
  for (let i = 0; i < 10_000; i++) {
    await read(i, 'one');
    if (i % 500 === 499) most = Math.max(most, memory());
  }
  expect(most).toBeLessThanOrEqual(150);
});

test('a server takes at most 200 MiB for 1,500 named sessions, and keeps only the locks of open ones', async () => {
  let most = 0;
  for (let i = 0; i < 1_500; i++) {
    await read(i, `session-${i}`);
    await agent.call('find', { pattern: 'src/*', session: `session-${i}` });
    if (i % 100 === 99) most = Math.max(most, memory());
  }
  expect(most).toBeLessThanOrEqual(200);
  // A session is closed once the database has its steps and another one's call has ended.
  const locks = async (): Promise<number> => {
    await read(0, 'session-1499');
    return (await readdir(join(data, 'sessions'))).length;
  };
  await until(locks, (count) => count <= 64);
  // The first session was closed long ago and continues from its state.
  await read(7, 'session-0');
  const { text } = await agent.call('context', { session: 'session-0', full: true });
  expect(text).toContain('f0.txt');
  expect(text).toContain('f7.txt');
});
