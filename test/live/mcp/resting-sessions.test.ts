import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sessionLockOwners } from '../../../src/journal/session-lock.js';
import { sessionId } from '../../../src/objects/ids.js';
import { type Agent, stdioAgent, suiteClientFolder, temporaryRoot } from '../../support/mcp-clients.js';
import { until } from '../../support/until.js';

/** More sessions than one connection keeps open while idle. */
const OTHERS = 40;

describe('idle sessions of one connection', () => {
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  let agent: Agent;
  beforeAll(async () => {
    folder = await temporaryRoot();
    for (const name of ['a', 'b', 'c']) await writeFile(join(folder.root, `${name}.txt`), `text of ${name}\n`);
    agent = await stdioAgent(folder.root);
  });
  afterAll(async () => {
    await agent.close();
    await folder.remove();
  });

  test('are closed with their locks, and continue with the same sets when they are named again', async () => {
    const session = sessionId(`resting-${process.pid}`);
    const locks = () => sessionLockOwners(suiteClientFolder(), session);
    const called = async (
      name: string,
      args: Readonly<Record<string, unknown>>,
      of: string = session,
    ): Promise<string> => {
      const { isError, text } = await agent.call(name, { ...args, session: of });
      expect({ isError, text }).toMatchObject({ isError: false });
      return text;
    };
    for (const path of ['a.txt', 'b.txt']) await called('read', { path });
    await called('ls', {});
    await called('pin', { ids: ['a.txt'] });
    await called('deactivate', { ids: ['b.txt'] });
    // Returns the pool with its marks. Reading it is a separate call.
    const pool = async (): Promise<readonly string[]> =>
      (await called('context', { full: true }))
        .split('\n')
        .filter((line) => / type=/.test(line) && !/ tool=context /.test(line));
    const before = await pool();
    expect(before.length).toBeGreaterThan(5);
    expect(await locks()).toHaveLength(1);
    for (let i = 0; i < OTHERS; i++) await called('read', { path: 'a.txt' }, `${session}-${i}`);
    await until(locks, (owners) => owners.length === 0);
    expect(await pool()).toEqual(before);
    expect(await locks()).toHaveLength(1);
    const { text } = await agent.call('unpin', { ids: ['a.txt'], session });
    expect(text).toMatch(/^unpinned /m);
    expect(await called('read', { path: 'b.txt' })).toContain('text of b');
  });
});
