import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import type { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { Validator } from '@seriousme/openapi-schema-validator';
import { SESSION_OPERATIONS } from '../../../src/harness/http/session-operations.js';
import type { HarnessApi } from '../../support/harness-api.js';
import { httpAgent } from '../../support/mcp-clients.js';
import { servedFolders } from '../../support/served-folders.js';

const { api, serve } = servedFolders({ folders: [{ 'a.txt': 'alpha\n', 'b.txt': 'beta\n' }] });
const run = randomUUID().slice(0, 8);

const send: HarnessApi['send'] = (path, sent) => api.send(path, sent);
const refused: HarnessApi['refused'] = (path, sent) => api.refused(path, sent);
const call: HarnessApi['call'] = (id, session, body) => api.call(id, session, body);

const history = (id: string) => [
  { role: 'system', content: 'be brief' },
  { role: 'user', content: 'look at a' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id, type: 'function', function: { name: 'read_file', arguments: '{"path":"a.txt"}' } }],
  },
  { role: 'tool', tool_call_id: id, content: 'alpha\n' },
];

describe('the life of a session over HTTP', () => {
  test('opens, works, reads back, pauses, resumes, forks and lists', async () => {
    const opened = await call('openSession', undefined, { system_prompt: 'first' });
    const { id } = opened;
    expect(opened).toMatchObject({ resumed: false, step: 0, turn: 0 });
    const callId = `h1-${run}`;
    const reported = await call('reportMessages', id, { messages: history(callId), mode: 'history' });
    expect(reported).toMatchObject({
      recorded: [{ kind: 'message' }, { kind: 'message' }, { kind: 'call', call_id: callId }],
      known: 0,
      notice: null,
      turn: 1,
      step: 3,
    });
    expect((await call('reportMessages', id, { messages: history(callId), mode: 'history' })).recorded).toEqual([]);

    const calls = [{ id: `h2-${run}`, name: 'Ls', content: 'a.txt\nb.txt' }];
    const listed = await call('reportToolCalls', id, { calls });
    expect(listed.calls).toMatchObject([{ call_id: `h2-${run}`, outcome: 'recorded', files: 2 }]);
    expect((await call('reportToolCalls', id, { calls })).calls).toMatchObject([{ outcome: 'known' }]);

    const before = await call('beginTurn', id, {});
    expect(before.text).toContain('be brief');
    expect(before.text).not.toContain('\nbeta');
    expect(before.record).toMatchObject({ delivered: 'http', renderer: 'text', turn: 1, session: id });
    const activated = await call('activate', id, { ids: ['b.txt'], call_id: `v1-${run}` });
    expect(activated).toMatchObject({
      ok: true,
      call_id: `v1-${run}`,
      entries: [{ reference: 'b.txt', ok: true, chars: 5 }],
    });
    const file = activated.entries[0]?.id ?? '';
    expect((await call('beginTurn', id, {})).text).toContain('\nbeta');
    expect(await call('pin', id, { ids: [file] })).toMatchObject({ ok: true });
    expect((await call('getSession', id)).pinned).toEqual([file]);
    expect(await call('unpin', id, { ids: [file] })).toMatchObject({ ok: true });
    expect(await call('deactivate', id, { ids: [file] })).toMatchObject({ ok: true });
    expect(await call('deactivate', id, { ids: [file] })).toMatchObject({
      ok: false,
      entries: [{ failure: 'not-active' }],
    });

    await call('setSystemPrompt', id, { text: 'be long' });
    const parts = await call('beginTurn', id, {
      format: 'messages',
      messages: [{ role: 'user', content: 'and now?' }],
    });
    expect(parts).toMatchObject({
      system: 'be long',
      report: { recorded: [{ index: 0, kind: 'message' }] },
      record: { turn: 2, renderer: 'messages' },
    });
    expect(parts.messages?.at(-2)).toMatchObject({ section: 'chat', role: 'user', parts: [{ text: 'and now?' }] });

    const state = await call('getSession', id);
    expect(await call('closeSession', id)).toEqual({ id, closed: true });
    expect(await refused(`/v1/sessions/${id}/messages`, { body: { messages: [] } })).toMatchObject({
      status: 404,
      code: 'session-not-open',
    });
    expect(await call('openSession', undefined, { id, must_exist: true })).toEqual({ ...state, resumed: true });

    expect(await call('openSession', undefined, { fork: { parent: id, at: 'turn:1.2' } })).toMatchObject({
      resumed: false,
      turn: 1,
      step: 2,
    });
    const fork = await call('openSession', undefined, { fork: { parent: id, at: 2 } });
    expect(fork).toMatchObject({ resumed: false, turn: 1, step: 2 });
    const { sessions } = await call('listSessions');
    expect(sessions.find((session) => session.id === fork.id)).toMatchObject({
      parent: { session: id, at: 2 },
      open_here: true,
    });
    expect(sessions.find((session) => session.id === id)).toMatchObject({ steps: state.step, turns: 2 });
  });

  test('shows the same over MCP and to the harness', async () => {
    const id = `both-${run}`;
    await call('openSession', undefined, { id });
    const agent = await httpAgent(serve);
    await agent.call('read', { path: 'a.txt', session: id });
    expect((await call('beginTurn', id, {})).text).toContain('\nalpha');
    await call('reportMessages', id, { messages: [{ role: 'user', content: 'hello there' }] });
    expect((await agent.call('context', { full: true, session: id })).text).toContain('user: hello there');
    await agent.close();
    expect((await call('getSession', id)).turn).toBe(2);
  });

  test('begins each epoch request with the previous one, also with MCP reads; refuses impossible ones', async () => {
    const { id } = await call('openSession', undefined, { system_prompt: 'be good' });
    const path = `/v1/sessions/${id}/context`;
    const first = await call('beginTurn', id, { layout: 'epoch', messages: [{ role: 'user', content: 'look at a' }] });
    expect(first).toMatchObject({
      format: 'messages',
      system: 'be good',
      epoch: { number: 1, begins: true, reason: 'first' },
    });
    expect(first.record).toMatchObject({ renderer: 'epoch', layout: 'epoch', delivered: 'http' });
    const agent = await httpAgent(serve);
    await agent.call('read', { path: 'a.txt', session: id });
    const second = await call('beginTurn', id, { layout: 'epoch', model: 'claude-sonnet-4-5', window: 100_000 });
    expect(second.messages?.slice(0, 1)).toEqual(first.messages);
    expect(JSON.stringify(second.messages)).toMatch(/ACTIVE_CONTENT id=\S+\\nalpha/);
    await agent.call('read', { path: 'a.txt', session: id });
    const third = await call('beginTurn', id, { layout: 'epoch' });
    expect(third.messages?.slice(0, second.messages?.length)).toEqual(second.messages);
    await agent.close();
    const past = await send(`/v1/context?session=${id}&at=turn:${third.record.turn}`, { method: 'GET' });
    expect(past.body).toMatchObject({ source: 'record', matches: true, sha256: third.record.sha256 });
    expect(await refused(path, { body: { layout: 'epoch', format: 'text' } })).toMatchObject({
      status: 400,
      code: 'not-in-epochs',
    });
    const answer = [{ role: 'assistant', content: 'hm' }];
    expect(await refused(path, { body: { layout: 'epoch', mode: 'history', messages: answer } })).toMatchObject({
      code: 'not-in-epochs',
    });
    expect(await refused(path, { body: { layout: 'pool-last' } })).toMatchObject({
      status: 400,
      code: 'invalid-request',
    });
  });

  test('keeps a harness list from a message on, with ours between', async () => {
    const { id } = await call('openSession', undefined, {});
    const messages = history(`e1-${run}`);
    const sent = { layout: 'epoch', mode: 'history', messages };
    const begun = await call('beginTurn', id, sent);
    expect(begun).toMatchObject({ system: 'be brief', epoch: { number: 1 } });
    const more = [...messages, { role: 'assistant', content: 'it says alpha' }, { role: 'user', content: 'and b?' }];
    const next = await call('beginTurn', id, { ...sent, messages: more });
    expect(next).toMatchObject({
      messages: begun.messages,
      list: { from: begun.list?.from },
      epoch: { number: 1, begins: false },
    });
  });

  test('stays open for its harness when an agent leaves', async () => {
    const { id } = await call('openSession', undefined, {});
    const agent = await httpAgent(serve);
    await agent.call('read', { path: 'a.txt', session: id });
    await (agent.transport as StreamableHTTPClientTransport).terminateSession();
    await agent.close();
    expect(await call('reportMessages', id, { messages: [{ role: 'user', content: 'still here' }] })).toMatchObject({
      step: 2,
    });
  });

  test('processes parallel reports one after another', async () => {
    const { id } = await call('openSession', undefined, {});
    const many = Array.from({ length: 20 }, (_, i) =>
      call('reportToolCalls', id, { calls: [{ id: `p${i}-${run}`, name: 'x', content: `${i}` }] }),
    );
    await Promise.all(many);
    expect(await call('getSession', id)).toMatchObject({ step: 20, index: 20 });
  });
});

describe('refused requests', () => {
  test('include requests without the token or from elsewhere', async () => {
    expect(await refused('/v1/sessions', { headers: { authorization: 'Bearer wrong' } })).toMatchObject({
      status: 401,
      code: 'unauthorized',
    });
    expect(await refused('/v1/sessions', { headers: { origin: 'https://evil.example.com' } })).toMatchObject({
      status: 403,
      code: 'forbidden',
    });
    expect(await refused('/v1/openapi.json', { method: 'GET', headers: { host: 'evil.example.com' } })).toMatchObject({
      status: 403,
    });
    expect((await send('/v1/sessions', { headers: { authorization: '' } })).headers['www-authenticate']).toBe('Bearer');
  });

  test('include wrong paths and methods', async () => {
    expect(await refused('/v1/nothing', { method: 'GET' })).toMatchObject({ status: 404, code: 'not-found' });
    expect(await refused('/v1', { method: 'GET' })).toMatchObject({ status: 404 });
    const wrong = await send('/v1/sessions', { method: 'PUT' });
    expect([wrong.status, wrong.headers.allow]).toEqual([405, 'POST, GET']);
  });

  test('include invalid bodies, with the place', async () => {
    const { id } = await call('openSession', undefined, {});
    const bad = await refused(`/v1/sessions/${id}/messages`, {
      body: { messages: [{ role: 'user', content: 7 }], more: 1 },
    });
    expect(bad).toMatchObject({ status: 400, code: 'invalid-request' });
    expect(bad.problem.errors?.map(({ pointer }) => pointer)).toEqual(expect.arrayContaining(['/messages/0/content']));
    expect(await refused('/v1/sessions', { raw: '{"id":' })).toMatchObject({ status: 400, code: 'invalid-request' });
    expect(await refused('/v1/sessions', { raw: 'id=1', headers: { 'content-type': 'text/plain' } })).toMatchObject({
      status: 415,
      code: 'not-json',
    });
    expect(await refused('/v1/sessions', { body: { id: '../x' } })).toMatchObject({ status: 400 });
    const result = [{ role: 'tool', tool_call_id: 'never', content: '' }];
    expect(await refused(`/v1/sessions/${id}/messages`, { body: { messages: result } })).toMatchObject({
      status: 409,
      code: 'unknown-call',
    });
  });

  test.each<[string, string, unknown, string, string]>([
    [
      'a call',
      'tool-calls',
      { calls: [{ name: 'Read', arguments: { path: 'a.txt' } }] },
      '/calls/0/arguments',
      'id, name, args, content',
    ],
    [
      'a file of a call',
      'tool-calls',
      { calls: [{ name: 'Read', files: [{ path: 'a.txt', text: '' }] }] },
      '/calls/0/files/0/text',
      'path',
    ],
    [
      'a file of a message',
      'messages',
      { messages: [{ role: 'tool', content: '', files: [{ path: 'a', x: 1 }] }] },
      '/messages/0/files/0/x',
      'path',
    ],
    ['the body of a report', 'messages', { messages: [], turn_id: 'x' }, '/turn_id', 'messages, mode, turn'],
    ['the body of a context', 'context', { formatt: 'text' }, '/formatt', 'format, layout'],
    ['the body of a verb', 'pin', { ids: ['x'], id: 'x' }, '/id', 'ids, call_id, turn'],
    ['the body of a close', 'close', { pause: true }, '/pause', 'none'],
  ])(
    'include an unknown field in %s, by name with the known ones; nothing is recorded',
    async (_, path, body, pointer, known) => {
      const { id, step } = await call('openSession', undefined, {});
      const { status, code, problem } = await refused(`/v1/sessions/${id}/${path}`, { body });
      expect([status, code]).toEqual([400, 'invalid-request']);
      expect(problem.errors).toEqual([
        { pointer, detail: expect.stringContaining(`unknown field; known here: ${known}`) },
      ]);
      expect(problem.detail).toContain(`${pointer}: unknown field`);
      expect((await call('getSession', id)).step).toBe(step);
    },
  );

  test('include an unknown parameter, with or without valid ones', async () => {
    const unknown = (detail: string) => ({ status: 400, problem: { errors: [{ pointer: '/when', detail }] } });
    expect(await refused('/v1/show?object=a&when=now', { method: 'GET' })).toMatchObject(
      unknown('unknown parameter; known here: object, session, at, valid_time, tx'),
    );
    expect(await refused('/v1/sessions?when=now', { method: 'GET' })).toMatchObject(
      unknown('unknown parameter; known here: none'),
    );
  });

  test('do not include messages with unlisted members, which other wires have', async () => {
    const { id } = await call('openSession', undefined, {});
    const messages = [
      { role: 'user', content: [{ type: 'text', text: 'hi', cache_control: { type: 'ephemeral' } }], refusal: null },
    ];
    expect((await call('reportMessages', id, { messages })).recorded).toHaveLength(1);
  });

  test('include a body above the limit, and the server continues', async () => {
    const raw = Buffer.alloc(65 * 1024 * 1024, 32);
    expect(await refused('/v1/sessions', { raw })).toMatchObject({ status: 413, code: 'body-too-large' });
    await call('openSession', undefined, {});
  });

  test('include missing sessions', async () => {
    expect(await refused('/v1/sessions', { body: { id: `none-${run}`, must_exist: true } })).toMatchObject({
      status: 404,
      code: 'no-such-session',
    });
    expect(await refused('/v1/sessions', { body: { fork: { parent: `none-${run}` } } })).toMatchObject({
      status: 404,
      code: 'unknown-session',
    });
    expect(await refused('/v1/sessions/%E0%A4%A/close')).toMatchObject({ status: 404 });
  });
});

describe('the description of the interface', () => {
  test('is served, valid, and equal to the tested one', async () => {
    const { status, body } = await send('/v1/openapi.json', { method: 'GET' });
    expect(status).toBe(200);
    const { valid, errors } = await new Validator().validate(body as Record<string, unknown>);
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    const { paths } = body as { paths: Record<string, Record<string, unknown>> };
    for (const { path, method } of Object.values(SESSION_OPERATIONS))
      expect(paths[path]).toHaveProperty(method.toLowerCase());
  });
});
