import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from '@jest/globals';
import type { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { inspectJournals } from '../../../src/journal/journals.js';
import { nodeStatus } from '../../../src/node/node-status.js';
import { stopNode } from '../../../src/node/stop-node.js';
import { stdioAgent } from '../../support/mcp-clients.js';
import { onOneNode } from '../../support/on-one-node.js';
import { runCli } from '../../support/run-cli.js';

describe('palimpsest mcp on a durable data folder', () => {
  let root: string;
  let data: string;
  const flags = () => ['--data', data, '--profile', 'rocksdb', '--session', 'durable', '--log-level', 'silent'];

  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-durable-mcp-')));
    data = join(root, '.data');
    for (const name of ['a', 'b', 'c']) await writeFile(join(root, `${name}.txt`), `text of ${name}\n`);
  });

  afterAll(async () => {
    await stopNode(data);
    await rm(root, { recursive: true, force: true });
  });

  const kill = (pid: number | null | undefined): void => {
    if (typeof pid === 'number') process.kill(pid, 'SIGKILL');
  };

  onOneNode(
    'what was answered is found again after kill -9 of the server and of the node (decisions F9, H5)',
    async () => {
      const first = await stdioAgent(root, flags());
      await first.call('read', { path: 'a.txt' });
      const before = await nodeStatus(data);
      // The node dies first. The next answers exist only in the journal when the server dies too.
      if (before.running) {
        kill(before.supervisorPid);
        kill(before.pid);
      }
      const b = await first.call('read', { path: 'b.txt' });
      const c = await first.call('read', { path: 'c.txt' });
      expect([b.isError, c.isError]).toEqual([false, false]);
      kill((first.transport as StdioClientTransport).pid);
      await first.close();
      expect((await inspectJournals(data)).some(({ pending }) => pending > 0)).toBe(true);
      const report = JSON.parse((await runCli(['doctor', '--data', data, '--json'])).stdout);
      expect(report.journals.some(({ pending }: { readonly pending: number }) => pending > 0)).toBe(true);
      const second = await stdioAgent(root, flags());
      try {
        const { text } = await second.call('context', { full: true });
        expect(text).toContain('text of a');
        expect(text).toContain('text of b');
        expect(text).toContain('text of c');
      } finally {
        await second.close();
      }
      expect((await inspectJournals(data)).every(({ pending }) => pending === 0)).toBe(true);
      expect((await runCli(['doctor', '--data', data])).stdout).toMatch(/node {6}rocksdb/);
    },
  );
});
