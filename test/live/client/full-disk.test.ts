import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, open as openFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { openClient, testAddress, wholeRead } from '../../support/context.js';
import { canMount, mountSmall, unmount } from '../../support/disk-tricks.js';
import { stdioAgent } from '../../support/mcp-clients.js';
import { Road } from '../../support/road.js';
import { callReport, contentsOf } from '../../support/tracked-project.js';

const run = promisify(execFile);
const canLimit = await run('prlimit', ['--version']).then(
  () => true,
  () => false,
);
const PAGE = 200_000;

describe('a full disk under the journal', () => {
  let folder: string;
  let road: Road;
  let dataDir: string;
  const clients: ContextClient[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'palimpsest-full-'));
    dataDir = join(folder, 'data');
    await mkdir(dataDir);
    road = new Road(folder);
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await road.close();
    await rm(folder, { recursive: true, force: true });
  });

  (canMount() ? test : test.skip).each(['process', 'power'] as const)(
    'refuses the call with advice, keeps the session, and continues once there is room (durability %s) [F9, H5]',
    async (durability) => {
      mountSmall(dataDir, '1m');
      try {
        await writeFile(join(folder, 'a.ts'), 'const a = 1;');
        const client = await openClient(folder, { address: road.address, dataDir, durability });
        clients.push(client);
        const session = await client.openSession();
        const before = await session.recordCall(callReport({ tool: 'bash', content: 'b'.repeat(PAGE) }));
        await writeFile(join(dataDir, 'filler'), Buffer.alloc(1_000_000)).catch(() => undefined);
        const state = session.state;
        const { waiting } = client.status;
        const reading = await wholeRead(client, 'a.ts');
        const refusal = { name: 'JournalError', code: 'no-space', message: expect.stringContaining('free some space') };
        for (const content of ['refused', 'refused again'])
          await expect(
            session.recordCall(callReport({ content: content.repeat(PAGE), readings: [reading] })),
          ).rejects.toMatchObject(refusal);
        await expect(session.reportMessage({ role: 'user', text: 'refused '.repeat(PAGE) })).rejects.toMatchObject(
          refusal,
        );
        expect(session.state).toBe(state);
        expect(client.status.waiting).toBe(waiting);
        expect(client.tracking).toMatchObject({ attached: 0, orphaned: 0 });
        const away = await session.assemble();
        expect(away.text).not.toContain('refused');

        await rm(join(dataDir, 'filler'));
        const after = await session.recordCall(callReport({ tool: 'bash', content: 'after', readings: [reading] }));
        await road.open();
        await after.applied;
        await client.close();
        const next = await openClient(folder, { address: testAddress(), dataDir: join(folder, 'other') });
        clients.push(next);
        const steps = await (await next.snapshot()).steps(session.id);
        expect(steps.map(({ seq, call }) => [seq, call?.id])).toEqual([
          [1, before.callId],
          [2, after.callId],
        ]);
        expect(await contentsOf(next, before.callId)).toEqual(['b'.repeat(PAGE)]);
      } finally {
        await Promise.all(clients.splice(0).map((client) => client.close()));
        unmount(dataDir);
      }
    },
  );

  (canLimit ? test : test.skip)(
    'a server that cannot write any file, even its log, answers calls with errors until it can write again',
    async () => {
      const port = await Road.fromPort(folder);
      const session = `limited-${process.pid}-${Date.now()}`;
      const log = await openFile(join(folder, 'log'), 'a');
      const args = ['--session', session, '--data', dataDir, '--log-level', 'debug'];
      const agent = await stdioAgent(folder, args, { XTDB_URL: port.url }, { stderr: log.fd });
      try {
        const { pid } = agent.transport as StdioClientTransport;
        const limit = (bytes: string) => run('prlimit', ['--pid', String(pid), `--fsize=${bytes}:`]);
        const first = await agent.call('write', { path: 'first.txt', content: 'first' });
        expect(first.isError).toBe(false);
        await port.close();
        await limit('64');
        const { size } = await log.stat();
        for (const path of ['first.txt', 'first.txt', 'second.txt']) {
          expect(await agent.call('read', { path })).toMatchObject({
            isError: true,
            text: expect.stringMatching(/journal .*nothing was acknowledged: free some space/s),
          });
        }
        expect((await log.stat()).size).toBe(size);
        await limit('unlimited');
        const second = await agent.call('read', { path: 'first.txt' });
        expect(second.isError).toBe(false);
        expect((await log.stat()).size).toBeGreaterThan(size);
        await port.open();
        const { text } = await agent.call('context', { full: true });
        expect(text.match(/toolcall_ref id=\S+ tool=read status=ok/g)).toEqual([
          `toolcall_ref id=${second.meta.call} tool=read status=ok`,
        ]);
        expect((await stat(join(folder, 'first.txt'))).size).toBe(5);
      } finally {
        await agent.close();
        await port.close();
        await log.close();
      }
    },
  );
});
