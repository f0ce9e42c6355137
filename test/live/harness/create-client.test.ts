import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ApiSessions } from '../../../src/harness/http/api-sessions.js';
import { Backend } from '../../../src/host/backend.js';
import { createLog } from '../../../src/host/log.js';
import type { ServerSettings } from '../../../src/host/settings.js';
import { createContextClient } from '../../../src/index.js';
import { sessionLockOwners } from '../../../src/journal/session-lock.js';
import { DEFAULT_POLICY } from '../../../src/session/step-policy.js';
import { testAddress } from '../../support/context.js';
import { suiteClientFolder, suiteData, temporaryRoot } from '../../support/mcp-clients.js';
import { until } from '../../support/until.js';

let root: string;
let remove: () => Promise<void>;

beforeEach(async () => {
  ({ root, remove } = await temporaryRoot());
  await writeFile(join(root, 'a.txt'), 'alpha');
});
afterEach(() => remove());

describe('createContextClient', () => {
  test('finds the node of its data folder and returns it', async () => {
    const client = await createContextClient({
      dataDir: suiteData(),
      roots: [root],
      cwd: root,
      journal: false,
      node: { profile: 'memory' },
    });
    const session = await client.openSession();
    await session.reportToolCall({ name: 'read', args: { path: 'a.txt' }, content: 'alpha' });
    expect(await session.assemble()).toMatchObject({ format: 'text', text: expect.stringMatching(/\nalpha\n/) });
    await client.close();
    await client.close();
    await expect(client.openSession()).rejects.toMatchObject({ code: 'closed' });
  });

  test('resumes acknowledged steps in the next client, with its own data folder and a node address', async () => {
    const other = await temporaryRoot();
    const make = () => createContextClient({ dataDir: other.root, address: testAddress(), roots: [root], cwd: root });
    const first = await make();
    const session = await first.openSession();
    const messages = [{ role: 'user', content: 'remember' }];
    await session.reportMessages(messages, { mode: 'history' });
    await first.close();
    const second = await make();
    const resumed = await second.resumeSession(session.id);
    expect(resumed.session.state.turns).toMatchObject([{ messages: [{ role: 'user', text: 'remember' }] }]);
    expect(await resumed.reportMessages(messages, { mode: 'history' })).toMatchObject({ recorded: [], known: 1 });
    await second.close();
    await other.remove();
  });
});

describe('sessions open over HTTP', () => {
  let backend: Backend;
  let sessions: ApiSessions;

  beforeEach(() => {
    const settings = {
      version: '0',
      node: { dataDir: suiteData(), profile: 'memory' as const },
      nodeUrl: undefined,
      nodeToken: undefined,
      roots: [root],
      cwd: root,
      mounts: [],
      session: undefined,
      takeOver: false,
      telemetry: {},
      shareSessions: false,
      durability: 'process' as const,
      policy: DEFAULT_POLICY,
      tools: {},
    } satisfies ServerSettings;
    backend = new Backend(settings, createLog('error'));
    sessions = new ApiSessions(backend, {});
  });
  afterEach(async () => {
    await sessions.closeAll();
    await backend.close();
  });

  test('are paused when idle for long, and reopen', async () => {
    const { id } = await sessions.open({});
    await sessions.use(id, (session) => session.reportMessages([{ role: 'user', content: 'hello' }]));
    await sessions.forgetIdle(60_000);
    expect(await sessions.use(id, async (session) => session.session.state.seq)).toBe(1);
    const busy = sessions.use(id, () => sessions.forgetIdle(-1));
    await busy;
    expect(await sessions.use(id, async (session) => session.id)).toBe(id);
    await sessions.forgetIdle(-1);
    await expect(sessions.use(id, async () => undefined)).rejects.toMatchObject({ code: 'session-not-open' });
    expect((await sessions.open({ id })).session.state.seq).toBe(1);
  });

  test('are closed when many are idle, and continue with the next request', async () => {
    const { id } = await sessions.open({ mine_shell: true });
    await sessions.use(id, (session) => session.reportMessages([{ role: 'user', content: 'hello' }]));
    const before = await sessions.use(id, async (session) => session);
    // More sessions than the server keeps in memory.
    for (let i = 0; i < 40; i++) await sessions.open({});
    await until(
      () => sessionLockOwners(suiteClientFolder(), id),
      (owners) => owners.length === 0,
    );
    const [first, second] = await Promise.all([0, 1].map(() => sessions.use(id, async (session) => session)));
    expect(first).not.toBe(before);
    expect(second).toBe(first);
    expect(
      await sessions.use(id, (session) => session.reportMessages([{ role: 'user', content: 'again' }])),
    ).toMatchObject({
      recorded: [expect.anything()],
    });
    expect(first?.session.state.turns.map(({ messages }) => messages.map(({ text }) => text))).toEqual([
      ['hello'],
      ['again'],
    ]);
    await sessions.close(id);
    await expect(sessions.use(id, async () => undefined)).rejects.toMatchObject({ code: 'session-not-open' });
  });
});
