import { randomUUID } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { makeBundle } from '../../../src/bundle/export-bundle.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { QUESTION_CAPACITY } from '../../../src/http/question-queue.js';
import { sessionId } from '../../../src/objects/ids.js';
import { ALL_QUESTIONS, ALL_REVIEW_ANSWERS } from '../../support/contracts.js';
import { type Serve, startServe } from '../../support/mcp-clients.js';
import { HOSTILE, type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

const DOUBLING = Array.from({ length: 30 }, (_, i) => `[(str ?s${i} ?s${i}) ?s${i + 1}]`).join(' ');

describe('history requests over HTTP', () => {
  const name = `web${randomUUID().slice(0, 8)}`;
  let made: ReviewedSessions;
  let serve: Serve;

  const get = async (path: string, parameters: Readonly<Record<string, string>>, init: RequestInit = {}) => {
    const url = new URL(path, serve.url);
    for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, value);
    return fetch(url, { headers: { authorization: `Bearer ${serve.token}` }, ...init });
  };
  const ask = async (id: keyof typeof ALL_QUESTIONS, parameters: Readonly<Record<string, string>>) => {
    const { path, answer } = ALL_QUESTIONS[id];
    const response = await get(path, parameters);
    const body = (await response.json()) as Record<string, unknown>;
    expect([response.status, body]).toEqual([200, expect.anything()]);
    if (answer !== null) expect(ALL_REVIEW_ANSWERS[answer].strict().parse(body)).toEqual(body);
    return body;
  };

  beforeAll(async () => {
    made = await reviewedSessions(name);
    serve = await startServe(['--share-sessions'], made.root);
  });
  afterAll(async () => {
    expect(await serve.close()).toBe(0);
    await made.close();
  });

  test('return a session as the same file as the command line, to authorised clients only', async () => {
    const session = `${name}-first`;
    const at = (id: string): string => `/v1/sessions/${encodeURIComponent(id)}/bundle`;
    const [whole, short] = await Promise.all([get(at(session), {}), get(at(`${session}@turn:1`), {})]);
    expect([whole.status, whole.headers.get('content-type')]).toEqual([200, 'application/gzip']);
    const bytes = Buffer.from(await whole.arrayBuffer());
    const lines: string[] = [];
    for await (const line of (
      await makeBundle(await Timeline.open(made.client.store), { session: sessionId(session) })
    ).lines())
      lines.push(line);
    expect(gunzipSync(bytes).toString()).toBe(lines.join(''));
    expect(gunzipSync(Buffer.from(await short.arrayBuffer())).toString()).toContain('"turn":1,');
    const refused = async (path: string, parameters = {}, init: RequestInit = {}) => {
      const response = await get(path, parameters, init);
      return [response.status, ((await response.json()) as { code: string }).code];
    };
    expect(await refused(at(`${name}-none`))).toEqual([404, 'unknown-session']);
    expect(await refused(at(`${session}@turn:99`))).toEqual([404, 'beyond-end']);
    expect(await refused(at(session), { format: 'zip' })).toEqual([400, 'invalid-request']);
    expect(await refused(at(session), {}, { headers: { authorization: 'Bearer wrong' } })).toEqual([
      401,
      'unauthorized',
    ]);
    expect(
      await refused(
        at(session),
        {},
        { headers: { authorization: `Bearer ${serve.token}`, origin: 'https://evil.example.com' } },
      ),
    ).toEqual([403, 'forbidden']);
    expect(
      (await get(at(session), {}, { method: 'PUT', headers: { authorization: `Bearer ${serve.token}` } })).status,
    ).toBe(405);
  });

  test('are answered according to their schemas', async () => {
    const session = `${name}-first`;
    expect(await ask('log', { session })).toMatchObject({
      turns: [{ turn: 3 }, { turn: 2 }, { turn: 1 }],
      versions: null,
    });
    expect(await ask('log', { object: made.file, limit: '2' })).toMatchObject({
      turns: null,
      versions: [{ number: 3 }, { number: 2 }],
    });
    expect(await ask('show', { object: 'a.ts', session, at: 'turn:1' })).toMatchObject({
      text: 'one\nshared\n',
      version: { place: { turn: 1 } },
    });
    expect(await ask('diff', { object: made.file, session, range: '1..2' })).toMatchObject({
      object: { diff: { added: 1, removed: 1 } },
      session: null,
    });
    expect(await ask('diff', { session, range: '1..3' })).toMatchObject({
      object: null,
      session: { sets: { pinned: { added: [made.file] } } },
    });
    expect(await ask('diffPrefix', { session })).toMatchObject({ session, compared: [], is_cut: false });
    expect(await ask('diffPrefix', { session, range: '2..2' })).toMatchObject({
      compared: [{ from: { turn: 2 }, is_prefix: true, difference: null, cause: null, answers: null }],
    });
    expect(await ask('pastContext', { session, at: 'turn:2' })).toMatchObject({
      source: 'record',
      matches: true,
      text: made.handedOut,
    });
    expect(await ask('who', { object: made.file })).toMatchObject({
      sessions: [{ session }, { session: `${name}-second` }],
    });
    const query = '{:find [?n] :in [?id] :where [[?e :xt/id ?id] [?e :char_count ?n]]}';
    expect(await ask('query', { query, args: `["${made.file}"]`, at: 'turn:1', session })).toMatchObject({
      rows: [[11]],
      is_cut: false,
    });
    expect(await ask('verify', { session })).toMatchObject({
      session,
      ok: true,
      contexts: { total: 1, equal: 1, by_delivery: { library: 1 }, unequal: [] },
      answers: { read: true, unequal: [] },
      parts: { damages: [] },
    });
    const body = JSON.stringify({ at: 'turn:2', object: 'a.ts', verdict: 'wrong', text: 'An older version', by: 'me' });
    const headers = { authorization: `Bearer ${serve.token}`, 'content-type': 'application/json' };
    const added = await get(`/v1/sessions/${session}/notes`, {}, { method: 'POST', body, headers });
    const note = { session, turn: 2, object: made.file, verdict: 'wrong', text: 'An older version', by: 'me' };
    expect([added.status, await added.json()]).toMatchObject([201, { note }]);
    const empty = await get(`/v1/sessions/${session}/notes`, {}, { method: 'POST', body: '{}', headers });
    expect([empty.status, await empty.json()]).toMatchObject([400, { code: 'empty-note' }]);
    const unknown = await get(
      '/v1/sessions/nobody/notes',
      {},
      { method: 'POST', body: '{"verdict":"right"}', headers },
    );
    expect([unknown.status, await unknown.json()]).toMatchObject([404, { code: 'unknown-session' }]);
    expect(await ask('notes', { session })).toMatchObject({ said: [note] });
    expect(await ask('notes', { session, at: 'turn:1' })).toEqual({ said: [] });
    expect(await ask('strip', { session })).toMatchObject({
      session,
      calls: [{ turn: 2, delivered: 'library', usage: null }],
      marks: expect.arrayContaining([expect.objectContaining({ kind: 'verb', tool: 'pin' })]),
    });
    expect(await ask('request', { session, at: 'turn:2' })).toMatchObject({
      number: 1,
      total: 1,
      previous: null,
      unequal: null,
      request: { turn: 2, matches: true },
    });
    expect(await ask('changes', { session, range: '2..2' })).toMatchObject({
      prefix: { is_prefix: true },
      changes: [],
    });
    expect(await ask('search', { session, text: 'two' })).toMatchObject({
      hits: expect.arrayContaining([
        expect.objectContaining({ kind: 'file', object: made.file, whole: [expect.anything()] }),
      ]),
    });
    expect(await ask('reportList', { session })).toMatchObject({ assemblies: [{ turn: 2, recorded: true }] });
    expect(await ask('reportDetail', { session, at: 'turn:2' })).toMatchObject({
      tokenizer: 'gpt-tokenizer/o200k_base',
      assembly: { turn: 2 },
    });
  });

  test('return plain text from cat that no browser renders as a page', async () => {
    const response = await get('/v1/cat', { object: made.hostileCall });
    expect(await response.text()).toBe(HOSTILE);
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(response.headers.get('x-content-type-options')).toBe('nosniff');
  });

  test.each<[string, string, Readonly<Record<string, string>>, number, string]>([
    ['an unknown session', '/v1/log', { session: 'nobody' }, 404, 'unknown-session'],
    ['an unknown object', '/v1/show', { object: 'no/such.ts' }, 404, 'unknown-object'],
    ['a turn beyond the end', '/v1/context', { session: 'NAME-first', at: 'turn:99' }, 404, 'beyond-end'],
    ['a malformed time', '/v1/log', { session: 'NAME-first', at: 'soon' }, 400, 'malformed-moment'],
    ['a verification of an unknown session', '/v1/verify', { session: 'nobody' }, 404, 'unknown-session'],
    [
      'a verification without the time for it',
      '/v1/verify',
      { session: 'NAME-first', timeout: '0.001' },
      504,
      'verify-timeout',
    ],
    ['a missing parameter', '/v1/show', {}, 400, 'invalid-request'],
    ['an unknown parameter', '/v1/show', { object: 'x', when: 'now' }, 400, 'invalid-request'],
    [
      'a query that would run code',
      '/v1/query',
      { query: '{:find [?x] :where [[(slurp "/etc/passwd") ?x]]}' },
      403,
      'query-refused',
    ],
    [
      'a query that makes ever larger values',
      '/v1/query',
      { query: `{:find [?e] :where [[?e :type ?s0] ${DOUBLING}]}` },
      403,
      'query-refused',
    ],
    [
      'a query without end',
      '/v1/query',
      {
        query: '{:find [?a ?b ?c ?d] :where [[?a :xt/id] [?b :xt/id] [?c :xt/id] [?d :xt/id]] :order-by [[?d :asc]]}',
        timeout: '0.2',
      },
      504,
      'query-timeout',
    ],
  ])('return a problem for %s', async (_, path, parameters, status, code) => {
    const named = Object.fromEntries(
      Object.entries(parameters).map(([key, value]) => [key, value.replace('NAME', name)]),
    );
    const response = await get(path, named);
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/problem+json']);
    expect(await response.json()).toMatchObject({ code, status });
  });

  test('are limited in number; one more gets a retry time, while sessions and long requests continue', async () => {
    const { running, waiting } = QUESTION_CAPACITY.short;
    const endless =
      '{:find [?a ?b ?c ?d] :where [[?a :xt/id] [?b :xt/id] [?c :xt/id] [?d :xt/id]] :order-by [[?d :asc]]}';
    const many = Array.from({ length: running + waiting + 20 }, () =>
      get('/v1/query', { query: endless, timeout: '0.2' }),
    );
    const meanwhile = await Promise.all([
      get('/v1/verify', { session: `${name}-first` }),
      get('/v1/sessions', {}, { method: 'POST' }),
    ]);
    expect(meanwhile.map(({ status }) => status)).toEqual([200, 201]);
    const answers = await Promise.all(many);
    const refused = answers.filter(({ status }) => status === 503);
    // The first requests may have been answered before the last ones came.
    expect(answers.filter(({ status }) => status === 504).length).toBe(answers.length - refused.length);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThanOrEqual(20);
    expect(new Set(refused.map(({ headers }) => headers.get('retry-after')))).toEqual(new Set(['5']));
    expect(await refused[0]?.json()).toMatchObject({ code: 'too-many-questions', status: 503 });
    const log = await get('/v1/log', {});
    expect([log.status, log.status === 200 ? '' : await log.text()]).toEqual([200, '']);
  });

  test('are read-only and require the token', async () => {
    expect((await get('/v1/log', {}, { method: 'POST' })).status).toBe(405);
    expect((await get('/v1/log', {}, { headers: {} })).status).toBe(401);
  });
});
