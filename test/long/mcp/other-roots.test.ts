import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { HarnessApi } from '../../support/harness-api.js';
import { type Agent, httpAgent, startServe, stdioAgent, temporaryRoot } from '../../support/mcp-clients.js';
import { uniquePrefix } from '../../support/xtdb.js';

const SECRET = 'the content of somebody else\n';
const name = (what: string): string => `${what}-${uniquePrefix().slice(0, -1)}`;

let outer: string;
let mine: string;
let theirs: string;
let remove: () => Promise<void>;
/** A session below the other folder, with a file read and known by its path and id. */
let session: string;
let secretId: string;

beforeAll(async () => {
  ({ root: outer, remove } = await temporaryRoot());
  [mine, theirs] = [join(outer, 'mine'), join(outer, 'theirs')];
  for (const folder of [mine, theirs]) await mkdir(folder);
  await writeFile(join(mine, 'a.txt'), 'alpha\n');
  await writeFile(join(theirs, 'secret.txt'), SECRET);
  session = name('theirs');
  const agent = await stdioAgent(theirs, ['--long-ids']);
  await agent.call('read', { path: 'secret.txt', session });
  secretId = /\bid=([0-9a-f]{64})/.exec((await agent.call('read', { path: 'secret.txt', session })).text)?.[1] ?? '';
  expect(secretId).toHaveLength(64);
  await agent.close();
});

afterAll(() => remove());

const CALLS: readonly (readonly [string, (id: string) => Readonly<Record<string, unknown>>])[] = [
  ['context', () => ({})],
  ['read', (id) => ({ id })],
  ['read', () => ({ path: 'a.txt' })],
  ['activate', (id) => ({ ids: [id] })],
  ['deactivate', (id) => ({ ids: [id] })],
  ['pin', (id) => ({ ids: [id] })],
  ['ls', () => ({})],
];

/**
 * Every call for the session is refused, whether it names the session by argument or by
 * conversation.
 */
async function refusesAll(agent: Agent): Promise<void> {
  for (const [tool, args] of CALLS) {
    const byArgument = await agent.call(tool, { ...args(secretId), session });
    const byThread = await agent.call(tool, args(secretId), { meta: { threadId: session } });
    for (const { isError, text } of [byArgument, byThread]) {
      expect([tool, isError, text.includes(SECRET.trim())]).toEqual([tool, true, false]);
      expect(text).toContain(`session ${session} used files below ${JSON.stringify(theirs)}`);
      expect(text).toContain('--share-sessions');
    }
  }
  // The server continues to work with its own sessions.
  expect((await agent.call('read', { path: 'a.txt', session: name('mine') })).text).toContain('alpha');
}

describe('a session from other folders', () => {
  test('is refused over stdio and stays unchanged', async () => {
    const agent = await stdioAgent(mine);
    await refusesAll(agent);
    await agent.close();
    const owner = await stdioAgent(theirs);
    // The owner's file and the owner's two calls that read it.
    expect((await owner.call('context', { session })).text).toMatch(/ turn=1 known=3 active=3 pinned=0 /);
    // Nor can another process take the session over while its owner has it open.
    const taker = await stdioAgent(mine, ['--take-over']);
    expect((await taker.call('context', { session })).text).toContain('used files below');
    await taker.close();
    expect((await owner.call('context', { session })).isError).toBe(false);
    await owner.close();
  });

  test('is refused over HTTP: MCP, the harness interface, and history requests', async () => {
    const serve = await startServe([], mine);
    const api = new HarnessApi(serve);
    const agent = await httpAgent(serve);
    try {
      await refusesAll(agent);
      const opened = await api.refused('/v1/sessions', { body: { id: session } });
      const forked = await api.refused('/v1/sessions', { body: { fork: { parent: session } } });
      const taken = await api.refused('/v1/sessions', { body: { id: session, take_over: true } });
      for (const { status, code } of [opened, forked, taken]) expect([status, code]).toEqual([403, 'other-roots']);
      const refused = {
        'other-roots': [
          `log?session=${session}`,
          `cat?object=${encodeURIComponent(`chat:${session}`)}`,
          `diff?session=${session}`,
          `diff/prefix?session=${session}`,
          `context?session=${session}`,
          `verify?session=${session}`,
          `report/list?session=${session}`,
          `show?object=${secretId}&session=${session}`,
        ],
        'outside-roots': ['log', 'show', 'cat', 'diff', 'who'].map((question) => `${question}?object=${secretId}`),
        forbidden: [`query?query=${encodeURIComponent('{:find [e] :where [[e :type "file"]]}')}`],
      };
      for (const [expected, questions] of Object.entries(refused)) {
        for (const question of questions) {
          const { code, status, problem } = await api.refused(`/v1/${question}`, { method: 'GET' });
          expect([question, status, code]).toEqual([question, 403, expected]);
          expect(JSON.stringify(problem)).not.toContain(SECRET.trim());
        }
      }
      const turn = encodeURIComponent(`${session}@turn:1`);
      const reports = [
        `context?conversation_id=${session}`,
        `context/list?conversation_id=${session}`,
        `context/list?turn_id=${turn}`,
        `context/list?turn_id=${encodeURIComponent(`${session.slice(0, -1)}@turn:1`)}`,
        `context/tools?conversation_id=${session}`,
        `context/detail/00000000-0000-4000-8000-000000000000?conversation_id=${session}`,
      ];
      for (const question of reports) {
        const { code, status } = await api.refused(`/${question}`, { method: 'GET' });
        expect([question, status, code]).toEqual([question, 403, 'other-roots']);
      }
      const latest = await api.send('/v1/log', { method: 'GET' });
      expect([latest.status, JSON.stringify(latest.body).includes(session)]).toEqual([200, false]);
      const { sessions } = (await api.send('/v1/sessions', { method: 'GET' })).body as {
        readonly sessions: readonly { readonly id: string }[];
      };
      expect(sessions.map(({ id }) => id)).not.toContain(session);
    } finally {
      await agent.close();
      await serve.close();
    }
  });

  test('is opened by a server whose roots hold its folders, and then has these roots, as forks do', async () => {
    const shared = name('widened');
    const narrow = await stdioAgent(theirs);
    await narrow.call('read', { path: 'secret.txt', session: shared });
    await narrow.close();
    const wide = await stdioAgent(outer);
    expect((await wide.call('read', { id: secretId, session: shared })).text).toContain(SECRET.trim());
    await wide.close();
    const again = await stdioAgent(theirs);
    expect((await again.call('context', { session: shared })).text).toContain(
      `used files below ${JSON.stringify(outer)}`,
    );
    await again.close();
    const serve = await startServe([], outer);
    const api = new HarnessApi(serve);
    const fork = name('fork');
    await api.call('openSession', undefined, { id: fork, fork: { parent: session } });
    await serve.close();
    const agent = await stdioAgent(mine);
    expect((await agent.call('context', { session: fork })).text).toContain('used files below');
    await agent.close();
  });

  test('is opened by a sharing server, which shows only files inside its own folders', async () => {
    const shared = name('shared');
    const owner = await stdioAgent(theirs);
    await owner.call('read', { path: 'secret.txt', session: shared });
    await owner.close();
    const agent = await stdioAgent(mine, ['--share-sessions']);
    expect((await agent.call('read', { path: 'a.txt', session: shared })).text).toContain('alpha');
    const context = await agent.call('context', { session: shared });
    expect([context.isError, context.text.includes('a.txt'), context.text.includes(secretId)]).toEqual([
      false,
      true,
      false,
    ]);
    for (const [tool, args] of [
      ['read', { id: secretId }],
      ['read', { id: secretId.slice(0, 12) }],
      ['read', { path: join(theirs, 'secret.txt') }],
      ['activate', { ids: [secretId] }],
      ['pin', { ids: [secretId] }],
    ] as const) {
      const { text, isError } = await agent.call(tool, { ...args, session: shared });
      expect([tool, isError, text.includes(SECRET.trim())]).toEqual([tool, true, false]);
    }
    await agent.close();
  });
});
