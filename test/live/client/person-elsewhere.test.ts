import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { changeByPerson } from '../../../src/client/session/person-steps.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { openClient, wholeRead } from '../../support/context.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

describe('a person on another host than the agent', () => {
  const name = `elsewhere${randomUUID().slice(0, 8)}`;
  let folders: readonly Awaited<ReturnType<typeof temporaryRoot>>[];
  let agent: ContextClient;
  let reviewer: ContextClient;

  beforeAll(async () => {
    folders = [await temporaryRoot(), await temporaryRoot()];
    const open = (i: number) =>
      openClient(folders[i]?.root ?? '', { filesystemId: filesystemId(`fs-${randomUUID()}`), shareSessions: true });
    [agent, reviewer] = [await open(0), await open(1)];
    await writeFile(join(folders[0]?.root ?? '', 'a.txt'), 'text of a\n');
  });
  afterAll(async () => {
    await Promise.all([agent.close(), reviewer.close()]);
    await Promise.all(folders.map(({ remove }) => remove()));
  });

  const ask = (session: ContextSession) => session.reportMessage({ role: 'user', text: 'look' });
  const read = async (session: ContextSession) => {
    const call = {
      tool: 'read',
      args: { path: 'a.txt' },
      status: 'ok',
      content: 'read',
      answer: () => 'read',
    } as const;
    return (await session.recordCall({ ...call, readings: [await wholeRead(agent, 'a.txt')] })).applied;
  };
  const visit = (id: string) => reviewer.borrowSession({ id, asPerson: true });

  test.each([
    ['has opened it', async () => undefined],
    ['has begun a turn in it', ask],
    ['works in it', async (session: ContextSession) => ask(session).then(() => read(session))],
  ])('does not take a session from an agent that %s', async (how, work) => {
    const id = `${name}-${how.replaceAll(' ', '-')}`;
    const first = await agent.openSession({ id });
    await ask(first);
    await read(first);
    await agent.closeSession(first);
    const session = await agent.openSession({ id });
    await work(session);
    expect(await session.isDelivered(10_000)).toBe(true);
    await expect(visit(id)).rejects.toMatchObject({
      code: 'lease-held',
      message: expect.stringContaining('opened on another host'),
    });
    await ask(session);
    await session.reportMessage({ role: 'assistant', text: 'Still here.' });
    await agent.closeSession(session);
  });

  test('changes a session that was closed there, even twice, and leaves it to the agent', async () => {
    const id = `${name}-closed`;
    const session = await agent.openSession({ id });
    await ask(session);
    await read(session);
    await agent.closeSession(session);
    for (const verb of ['pin', 'pin', 'unpin'] as const) {
      const visited = await visit(id);
      // This host cannot read the file itself.
      const { state } = visited.session;
      const [object = ''] = state.sets.index.filter((one) => state.isToolResult(one));
      expect((await changeByPerson(visited.session, { verb, references: [object] })).entries).toMatchObject([
        { ok: true },
      ]);
      await visited.release();
    }
    const again = await agent.openSession({ id });
    await ask(again);
    expect(again.state.pinnedIds).toEqual([]);
    await agent.closeSession(again);
  });

  test('changes a session that was opened and closed there without a step, after both hosts have used it', async () => {
    const id = `${name}-idle`;
    const first = await reviewer.openSession({ id });
    await ask(first);
    await first.reportMessage({ role: 'assistant', text: 'Yes.' });
    await reviewer.closeSession(first);
    await agent.closeSession(await agent.openSession({ id }));
    await (await visit(id)).release();
  });

  test('changes a fork that was never opened', async () => {
    const id = `${name}-parent`;
    const session = await agent.openSession({ id });
    await ask(session);
    await read(session);
    const { id: fork } = await agent.makeFork(id);
    await (await visit(fork)).release();
    await agent.closeSession(session);
  });
});
