import { mkdir, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { testAddress } from '../../support/context.js';
import { stdioAgent, temporaryRoot } from '../../support/mcp-clients.js';
import { callReport } from '../../support/tracked-project.js';

describe('a data folder that is deleted while a process uses it', () => {
  let root: string;
  let dataDir: string;
  let remove: () => Promise<void>;

  beforeEach(async () => {
    ({ root, remove } = await temporaryRoot());
    dataDir = join(root, 'data');
  });
  afterEach(() => remove());

  const open = async (): Promise<readonly [ContextClient, ContextSession]> => {
    const client = await ContextClient.create({
      address: testAddress(),
      roots: [root],
      cwd: root,
      filesystemId: filesystemId('fs-deleted'),
      dataDir,
      track: false,
    });
    const session = await client.openSession();
    await session.recordCall(callReport({ tool: 'bash', content: 'one' }));
    return [client, session];
  };
  const record = (session: ContextSession) => session.recordCall(callReport({ tool: 'bash', content: 'two' }));

  test('refuses each call by the name of the folder and acknowledges nothing', async () => {
    const [client, session] = await open();
    await rm(dataDir, { recursive: true });
    for (let n = 0; n < 2; n += 1)
      await expect(record(session)).rejects.toMatchObject({
        code: 'unwritable',
        message: expect.stringMatching(new RegExp(`^${dataDir}/\\S+ was deleted while it was in use; nothing was`)),
      });
    expect(session.state.seq).toBe(1);
    await client.close().catch(() => undefined);
  });

  test('refuses each call too if only its locks are left, or only the journal is gone', async () => {
    const [client, session] = await open();
    await rm(join(dataDir, 'journal'), { recursive: true });
    await expect(record(session)).rejects.toMatchObject({
      code: 'unwritable',
      message: expect.stringContaining(`${dataDir}/journal was deleted`),
    });
    await client.close().catch(() => undefined);
  });

  test('makes an agent’s calls over MCP fail with the folder’s name, and is not created again', async () => {
    await writeFile(join(root, 'a.txt'), 'alpha\n');
    await mkdir(dataDir);
    const address = testAddress();
    const url = address.kind === 'unix' ? `unix:${address.socketPath}` : '';
    const agent = await stdioAgent(root, ['--data', dataDir, '--log-level', 'silent'], { XTDB_URL: url });
    try {
      expect(await agent.call('read', { path: 'a.txt' })).toMatchObject({ isError: false });
      await rm(dataDir, { recursive: true });
      for (const path of ['a.txt', 'a.txt'])
        expect(await agent.call('read', { path })).toMatchObject({
          isError: true,
          text: expect.stringMatching(new RegExp(`${dataDir}/\\S+ was deleted while it was in use`)),
        });
      expect(await readdir(dataDir).catch(() => [])).toEqual([]);
    } finally {
      await agent.close();
    }
  });
});
