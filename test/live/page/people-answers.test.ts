import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { CallReport } from '../../../src/client/session/call-report.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { answerReviewRequest } from '../../../src/http/review-routes.js';
import { PAGE_ANSWERS, type PageBody } from '../../../src/page/server/page-schemas.js';
import { reportDetail } from '../../../src/review/ask/context-report.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { addNote } from '../../../src/review/http/review-http.js';
import { keepChecks } from '../../../src/review/rows/kept-sessions.js';
import { mentions, openClient, wholeRead } from '../../support/context.js';
import { hiddenTexts, question } from '../../support/contracts.js';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { until } from '../../support/until.js';

describe('a page that was started in another folder', () => {
  const name = `people${randomUUID().slice(0, 8)}`;
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  let elsewhere: Awaited<ReturnType<typeof temporaryRoot>>;
  let client: ContextClient;
  let reviewer: ContextClient;
  const server = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://localhost');
    const folders = { dataDir: elsewhere.root, clientDir: elsewhere.root };
    const of = { client: reviewer, query, all: true, hiddenTexts, folders };
    answerReviewRequest(question(pathname), of, response).catch((error: unknown) => {
      response.statusCode = 500;
      response.end(String(error));
    });
  });
  const ask = async <N extends keyof typeof PAGE_ANSWERS>(
    path: string,
    answer: N,
    parameters: Readonly<Record<string, string | number>> = {},
  ): Promise<PageBody<N>> => {
    const url = new URL(path, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    for (const [key, value] of Object.entries(parameters)) url.searchParams.set(key, String(value));
    const response = await fetch(url);
    const text = await response.text();
    expect([response.status, text.slice(0, 300)]).toEqual([200, expect.anything()]);
    return PAGE_ANSWERS[answer].parse(JSON.parse(text)) as PageBody<N>;
  };
  const preview = (parameters: Readonly<Record<string, string>>) => ask('/v1/redaction', 'Redaction', parameters);
  const path = (file: string): string => join(folder.root, file);

  beforeAll(async () => {
    [folder, elsewhere] = [await temporaryRoot(), await temporaryRoot()];
    client = await openClient(folder.root);
    reviewer = await openClient(elsewhere.root, { shareSessions: true });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const session = await client.openSession({ id: name });
    const call = async (tool: string, args: CallReport['args'], content: string, more: Partial<CallReport> = {}) =>
      (await session.recordCall({ tool, args, status: 'ok', content, answer: () => content, ...more })).applied;
    const readings = async (file: string) => ({ readings: [await wholeRead(client, file)] });
    await writeFile(path('cart.ts'), 'one\n');
    await session.reportMessage({ role: 'user', text: 'Fix the cart,\nplease.' });
    await session.reportMessage({ role: 'assistant', text: 'I look.' }, undefined, {
      input: 10_000,
      output: 100,
      model: 'claude-sonnet-4-5',
    });
    await session.assemble({ deliver: 'library' });
    await call('read', { path: 'cart.ts' }, 'one\n', await readings('cart.ts'));
    await writeFile(path('cart.ts'), 'two\n');
    await call('ls', { path: '.' }, 'cart.ts', { mentions: await mentions(client, ['cart.ts']) });
    const { id } = await client.files.locate('cart.ts');
    await (await client.openSession({ id: `${name}-other` })).recordCall({
      tool: 'read',
      args: { path: 'cart.ts' },
      status: 'ok',
      content: 'two\n',
      answer: () => 'two\n',
      ...(await readings('cart.ts')),
    });
    await writeFile(path('cart.ts'), 'three\n');
    await session.reportMessage({ role: 'assistant', text: 'I edit.' }, undefined, {
      input: 12_000,
      output: 50,
      model: 'claude-sonnet-4-5',
      cost: 0.5,
    });
    await call('edit', { path: 'cart.ts', oldText: 'one', newText: 'three' }, 'done', await readings('cart.ts'));
    await call('bash', { command: 'npm test' }, 'no', { status: 'fail' });
    await session.recordEvent({ kind: 'compacted', detail: 'We fixed the cart.', missing: 2 });
    await session.assemble({ deliver: 'library' });
    await client.closeSession(session);
    await client.delivered();
    expect(id).not.toBe('');
  });
  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve));
    await Promise.all([client.close(), reviewer.close()]);
    await Promise.all([folder.remove(), elsewhere.remove()]);
  });

  test('shows the same objects as the report of the command line, and names calls by their actions', async () => {
    const strip = await ask('/v1/strip', 'Strip', { session: name });
    const timeline = await Timeline.open(await client.delivered());
    const { ledger } = await reportDetail(timeline, { reference: name, text: {}, count: countHere });
    expect(strip.bands.map(({ id }) => id).sort()).toEqual(ledger.objects.map(({ id }) => id).sort());
    const names = strip.bands.map((band) => [band.name, band.failed]);
    expect(names).toEqual(
      expect.arrayContaining([
        [path('cart.ts'), false],
        ['read cart.ts', false],
        ['bash npm test', true],
      ]),
    );
  });

  test('lists the session with its title, calls, cost and failures', async () => {
    const list = await until(
      () => ask('/v1/list', 'SessionList', { text: name, sort: 'cost' }),
      ({ counted, total }) => counted === total,
    );
    expect(list).toMatchObject({
      total: 2,
      sessions: [{ id: name, title: 'Fix the cart, please.' }, { title: '' }],
    });
    expect(list.sessions[0]?.folder).toBe(folder.root);
    // The session is unchecked, then checked, and unchecked again once it has another step.
    const { steps: upto, to } = list.sessions[0] ?? { steps: 0, to: '' };
    const check = { id: name, upto, at: Date.parse(to), findings: 2, checkedAt: 1_000 };
    const checks = async () => (await ask('/v1/list', 'SessionList', { text: name, sort: 'cost' })).sessions[0]?.check;
    expect(list.sessions[0]?.check).toBeNull();
    await keepChecks(elsewhere.root, [check]);
    expect(await checks()).toEqual({ findings: 2, at: '1970-01-01T00:00:01.000Z' });
    await keepChecks(elsewhere.root, [{ ...check, upto: upto - 1 }]);
    expect(await checks()).toBeNull();
    // 10,000 tokens in and 100 out at list prices, and half a dollar that the agent recorded.
    expect(list.sessions[0]?.figures).toMatchObject({
      calls: 2,
      tool_calls: 4,
      tokens: { total: 22_150 },
      cost: { amount: expect.closeTo(0.5315, 6), source: 'mixed', unpriced: 0 },
      files_changed: 1,
      failures: 1,
    });
  });

  test('returns the conversation with results, changes, compactions and outdated copies', async () => {
    const { rows, title, tool_calls } = await ask('/v1/conversation', 'Conversation', { session: name });
    expect([title, tool_calls]).toEqual(['Fix the cart, please.', 4]);
    const edit = rows.find((row) => row.kind === 'call' && row.tool === 'edit');
    expect(edit).toMatchObject({
      name: 'edit cart.ts',
      number: 3,
      call: 2,
      stale: true,
      diff: [{ lines: ['-one', '+three'] }],
      files: [{ name: path('cart.ts'), effect: 'changed', version: { number: 3 }, sight: { is_doubtful: true } }],
    });
    expect(edit?.kind === 'call' ? edit.files[0]?.sight?.sentence : '').toMatch(
      /^The agent had read all of version 1\. Version 2 was on the disk\. The replaced text is in version 1\.$/,
    );
    expect(rows.find((row) => row.kind === 'event')).toMatchObject({ summary: 'We fixed the cart.', dropped: 2 });
    const part = await ask('/v1/conversation', 'Conversation', { session: name, call: 4, limit: 2 });
    expect(part.rows.some((row) => row.kind === 'call' && row.name === 'bash npm test')).toBe(true);
  });

  test('says which files of a compaction were needed later, and by which call', async () => {
    const session = await client.openSession({ id: `${name}-compacted` });
    const read = async (file: string) => {
      const report = { tool: 'read', args: { path: file }, status: 'ok' as const, content: 'text\n' };
      const readings = [await wholeRead(client, file)];
      await (await session.recordCall({ ...report, answer: () => 'text\n', readings })).applied;
    };
    for (const file of ['once.ts', 'again.ts']) await writeFile(path(file), 'text\n');
    await session.reportMessage({ role: 'user', text: 'Look.' });
    await session.assemble({ deliver: 'library' });
    await read('once.ts');
    await read('again.ts');
    await session.recordEvent({ kind: 'compacted', detail: 'We looked.' });
    await session.assemble({ deliver: 'library' });
    await read('again.ts');
    const { seq } = session.state;
    await client.closeSession(session);
    const { compaction } = await ask('/v1/changes', 'Changes', { session: `${name}-compacted`, range: '..now' });
    const { id: object } = await client.files.locate('again.ts');
    expect(compaction).toMatchObject({
      files: 2,
      needed: [{ object, name: path('again.ts'), call: 'read again.ts', step: seq }],
    });
  });

  test('names the authors of versions, and calls that changed an outdated copy', async () => {
    const { calls, changed } = await ask('/v1/stale', 'Stale', { session: name });
    expect(changed).toEqual([{ object: expect.any(String), calls: 1 }]);
    expect(calls).toMatchObject([{ name: 'edit cart.ts', seen: { number: 1 }, was: { number: 2 } }]);
    const { versions } = await ask('/v1/authors', 'Authors', { session: name, object: path('cart.ts') });
    expect(versions.map(({ by }) => by.kind)).toEqual(['unknown', 'unknown', 'agent']);
    expect(versions[2]?.by).toMatchObject({ name: 'edit cart.ts', step: expect.any(Number) });
  });

  test('says which lines of a file were read, and that its first whole text is not a known change', async () => {
    const id = `parts${randomUUID().slice(0, 8)}`;
    const session = await client.openSession({ id });
    await writeFile(path('long.ts'), 'a\nb\nc\n');
    const call = async (tool: string, args: CallReport['args'], more: Partial<CallReport> = {}) =>
      (await session.recordCall({ tool, args, status: 'ok', content: 'b', answer: () => 'b', ...more })).applied;
    const known = { mentions: await mentions(client, ['long.ts']) };
    await call('read', { path: 'long.ts', offset: 2, limit: 1 }, known);
    await call('edit', { path: 'long.ts', oldText: 'b', newText: 'd' }, { ...known, status: 'fail' });
    await call('read', { path: 'long.ts' }, { readings: [await wholeRead(client, 'long.ts')] });
    // Some recordings name a patching tool after its effect.
    const input = '*** Begin Patch\n*** Update File: long.ts\n@@\n a\n-b\n+d\n@@\n-c\n*** End Patch';
    await call('edit', { input }, {});
    await client.closeSession(session);
    await client.delivered();
    const { calls, versions } = await ask('/v1/authors', 'Authors', { session: id, object: path('long.ts') });
    expect(calls).toMatchObject([
      { effect: 'read', lines: { from: 2, to: 2 }, failed: false },
      { effect: 'tried to change', lines: null, failed: true },
      { effect: 'read', lines: null },
    ]);
    expect(versions.map(({ by }) => by.why)).toEqual([
      expect.stringMatching(/read a part of it in turn 1, and the whole text was not recorded/),
      expect.stringMatching(/read all of it for the first time in turn 1\. Nothing shows whether it had changed/),
    ]);
    const { rows } = await ask('/v1/conversation', 'Conversation', { session: id });
    expect(rows.filter(({ kind }) => kind === 'change')).toEqual([]);
    expect(rows.at(-1)).toMatchObject({
      name: 'edit long.ts',
      diff: [{ lines: [' a', '-b', '+d'] }, { lines: ['-c'] }],
    });
  });

  test('previews what a redacted file masks, marked, from its first appearance', async () => {
    const { hits } = await preview({ session: name, rules: 'three\n/npm \\w+/' });
    const masked = hits.flatMap(({ lines }) =>
      lines.flatMap(({ excerpt, marks }) => marks.map(({ at, end }) => excerpt.slice(at, end))),
    );
    expect(new Set(masked)).toEqual(new Set(['three', 'npm test']));
    const times = hits.map(({ at }) => Date.parse(at));
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    expect((await preview({ session: name })).hits).toEqual([]);
  });

  test('counts every text that a redacted page masks, and lists the first 200', async () => {
    const id = `masked${randomUUID().slice(0, 8)}`;
    const session = await client.openSession({ id });
    for (let i = 1; i <= 210; i += 1) {
      const text = i <= 205 ? `The cart of Zacharias, ${i}.` : `Nothing of that kind, ${i}.`;
      await session.reportMessage({ role: 'user', text });
    }
    await client.closeSession(session);
    await client.delivered();
    const { hits, matches, texts } = await preview({ session: id, rules: 'Zacharias' });
    expect([hits.length, matches]).toEqual([200, 205]);
    expect(texts).toBeGreaterThanOrEqual(210);
  });

  test('divides the cost by cause and names the most expensive moments', async () => {
    const money = await ask('/v1/money', 'Money', { session: name });
    expect(money).toMatchObject({ calls: 2, spent: { amount: expect.closeTo(0.5315, 6) } });
    const sum = money.causes.reduce((all, { amount }) => all + (amount ?? 0), 0);
    expect(sum).toBeCloseTo(0.5315, 6);
    expect(money.causes.find(({ cause }) => cause === 'lost-cache')?.tokens).toBe(10_000);
    expect(money.costliest[0]?.sentence).toMatch(/^10,000 tokens were written again in turn 1\. /);
  });

  test('says the same about a lost cache in the cost view and in the changes of its call', async () => {
    const id = `lost${randomUUID().slice(0, 8)}`;
    const session = await client.openSession({ id });
    await session.reportMessage({ role: 'user', text: 'Go on.' });
    for (const input of [20_000, 22_000]) {
      await session.assemble({ deliver: 'library' });
      const usage = { input, output: 10, model: 'claude-sonnet-4-5' };
      await session.reportMessage({ role: 'assistant', text: `It has ${input}.` }, undefined, usage);
    }
    await client.closeSession(session);
    await client.delivered();
    const { costliest } = await ask('/v1/money', 'Money', { session: id });
    const lost = costliest.find(({ cause }) => cause === 'lost-cache');
    expect(lost?.sentence).toMatch(/^20,000 tokens were written again in turn 1 because the provider's cache/);
    const changes = await ask('/v1/changes', 'Changes', { session: id, range: `..step:${lost?.step}` });
    expect(changes).toMatchObject({
      sentence: lost?.sentence,
      counted: { read: 0, fresh: 2_000, again: 20_000, fewer: 0 },
      prefix: { to: { step: lost?.step } },
    });
  });

  test('says what is known of a request that was not recorded', async () => {
    const at = { session: `${name}-other` };
    const request = await ask('/v1/request', 'Request', at);
    expect(request).toMatchObject({ recorded: false, request: null, why: expect.stringMatching(/did not see them/) });
    expect(request.items.map((item) => item.name)).toContain('read cart.ts');
    const changes = await ask('/v1/changes', 'Changes', at);
    expect(changes).toMatchObject({ recorded: false, prefix: null, changes: [{ name: 'read cart.ts', kind: 'came' }] });
  });

  test('compares a fork with its parent: the shared past, what each changed and what came out', async () => {
    const fork = await client.forkSession(name, { id: `${name}-fork`, at: 3 });
    const usage = { input: 11_000, output: 10, model: 'claude-sonnet-4-5' };
    await fork.reportMessage({ role: 'assistant', text: 'Otherwise.' }, undefined, usage);
    await client.closeSession(fork);
    await client.delivered();
    const found = await ask('/v1/compared', 'Compared', { session: name, with: `${name}-fork` });
    expect(found).toMatchObject({
      shared: { steps: 3, calls: 1 },
      sides: [
        { outcome: 'I edit.' },
        {
          outcome: 'Otherwise.',
          files: [],
          row: { parent: { session: name }, figures: { calls: 1, tool_calls: 0, tokens: { total: 11_010 } } },
        },
      ],
      files: [{ name: path('cart.ts'), ids: [expect.any(String), null], same: null }],
    });
    // The parent paid for the shared past, which was in the cache.
    const money = await ask('/v1/money', 'Money', { session: `${name}-fork` });
    expect(money).toMatchObject({ calls: 1, tokens: { total: 11_010 }, by_call: [{ again: 10_000, written: 11_000 }] });
  });

  test('gives every pinned address the same answer after later writes', async () => {
    const { basis } = await ask('/v1/strip', 'Strip', { session: name });
    const [session, tx, object] = [name, basis.tx_id as number, path('cart.ts')];
    const places: readonly (readonly [string, Readonly<Record<string, string | number>>])[] = [
      ...['strip', 'request', 'conversation', 'money', 'stale', 'notes', 'changes', 'log', 'diff'].map(
        (place) => [place, { session }] as const,
      ),
      ['context', { session, at: 'step:8' }],
      ['restore', { session }],
      ['restore', { session, at: 'step:3' }],
      ['changes', { session, range: '..step:8' }],
      ['authors', { session, object }],
      ['who', { object }],
      ['who', { object, session }],
      ['diff', { object, session }],
      ['diff/prefix', { session }],
      ['log', { object }],
      ['show', { object, session }],
      ['search', { session, text: 'cart' }],
      ['search', { text: 'three', order: 'first' }],
      ['compared', { session, with: `${name}-other` }],
    ];
    const get = async ([place, of]: (typeof places)[number]): Promise<readonly [string, unknown]> => {
      const url = new URL(`/v1/${place}`, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      for (const [key, value] of Object.entries({ ...of, tx })) url.searchParams.set(key, String(value));
      const response = await fetch(url);
      const text = await response.text();
      expect([place, response.status, text.slice(0, 300)]).toEqual([place, 200, expect.anything()]);
      // Other suites may damage their sessions of the shared database meanwhile.
      const { damaged: _others, ...answer } = JSON.parse(text);
      return [`${place} ${JSON.stringify(of)}`, answer];
    };
    const all = async () => Object.fromEntries(await Promise.all(places.map(get)));
    const before = await all();
    const more = await client.openSession({ id: name });
    await more.reportMessage({ role: 'user', text: 'And more of the cart.' });
    await writeFile(path('cart.ts'), 'three and four\n');
    for (const one of [more, await client.openSession({ id: `${name}-third` })]) {
      const content = 'three and four\n';
      const readings = [await wholeRead(client, 'cart.ts')];
      await (
        await one.recordCall({
          tool: 'read',
          args: { path: 'cart.ts' },
          status: 'ok',
          content,
          answer: () => content,
          readings,
        })
      ).applied;
      await one.assemble({ deliver: 'library' });
      await client.closeSession(one);
    }
    await addNote(client, name, { verdict: 'wrong', text: 'the cart' });
    await client.delivered();
    await writeFile(path('cart.ts'), 'three\n');
    for (const [place, answer] of Object.entries(await all())) expect([place, answer]).toEqual([place, before[place]]);
    const now = await ask('/v1/conversation', 'Conversation', { session: name });
    expect(now.last_step).toBeGreaterThan(
      (before[`conversation {"session":"${name}"}`] as PageBody<'Conversation'>).last_step,
    );
  });
});
