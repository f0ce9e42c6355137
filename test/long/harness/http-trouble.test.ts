import { randomUUID } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { inspectJournals } from '../../../src/journal/journals.js';
import { HarnessApi } from '../../support/harness-api.js';
import { httpAgent, type Serve, startServe, temporaryRoot } from '../../support/mcp-clients.js';
import { Road } from '../../support/road.js';
import { until } from '../../support/until.js';

let root: string;
let remove: () => Promise<void>;
const serving: { readonly serve: Serve; readonly api: HarnessApi }[] = [];

async function start(
  ...args: Parameters<typeof startServe>
): Promise<{ readonly serve: Serve; readonly api: HarnessApi }> {
  const serve = await startServe(...args);
  const made = { serve, api: new HarnessApi(serve) };
  serving.push(made);
  return made;
}

async function stop({ serve, api }: (typeof serving)[number]): Promise<void> {
  await api.close();
  expect(await serve.close()).toBe(0);
}

beforeEach(async () => {
  ({ root, remove } = await temporaryRoot());
  await writeFile(join(root, 'a.txt'), 'alpha\n');
});

afterEach(async () => {
  for (const one of serving.splice(0)) await stop(one);
  await remove();
});

const said = (content: string) => ({ messages: [{ role: 'user', content }] });

describe('take_over over HTTP', () => {
  test("refuses another server's session by name, moves it on request, and returns it later [F5]", async () => {
    const id = `moved-${randomUUID().slice(0, 8)}`;
    const [{ api: first, serve }, { api: second }] = [await start([], root), await start([], root)];
    await first.call('openSession', undefined, { id });
    await first.call('reportMessages', id, said('one'));
    const agent = await httpAgent(serve);
    await agent.call('read', { path: 'a.txt', session: id });

    const held = await second.refused('/v1/sessions', { body: { id } });
    expect(held).toMatchObject({ status: 409, code: 'lease-held' });
    expect(held.problem.detail).toMatch(/is open in process \d+ \(palimpsest\) since/);
    expect(await second.call('openSession', undefined, { id, take_over: true })).toMatchObject({
      id,
      resumed: true,
      step: 2,
    });
    await second.call('reportMessages', id, said('two'));

    // The first server notices at its next step, for its harness as for its agent, and records
    // nothing.
    expect(await first.refused(`/v1/sessions/${id}/messages`, { body: said('too late') })).toMatchObject({
      status: 409,
      code: 'taken-over',
    });
    expect((await agent.call('read', { path: 'a.txt', session: id })).text).toMatch(
      /another process has taken this session over/,
    );
    expect(await first.refused('/v1/sessions', { body: { id, take_over: false } })).toMatchObject({
      status: 409,
      code: 'lease-held',
    });

    expect(await first.call('openSession', undefined, { id })).toMatchObject({ id, resumed: true, step: 3 });
    const { text } = await first.call('beginTurn', id, said('three'));
    for (const shown of ['user: one', '\nalpha', 'user: two', 'user: three']) expect(text).toContain(shown);
    expect(text).not.toContain('too late');
    expect((await agent.call('context', { full: true, session: id })).text).toContain('user: three');
    expect(await second.refused(`/v1/sessions/${id}/messages`, { body: said('too late as well') })).toMatchObject({
      status: 409,
      code: 'taken-over',
    });

    expect(await second.call('openSession', undefined, { id })).toMatchObject({ id, resumed: true, step: 5 });
    expect((await agent.call('read', { path: 'a.txt', session: id })).text).toMatch(/Call again to take it back/);
    expect((await agent.call('read', { path: 'a.txt', session: id })).text).toContain('alpha');
    expect(await second.refused(`/v1/sessions/${id}/messages`, { body: said('too late') })).toMatchObject({
      code: 'taken-over',
    });
    await agent.close();
  });
});

describe('a harness over HTTP while the database is away', () => {
  let folder: string;
  let road: Road;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'palimpsest-http-'));
    road = await Road.fromPort(folder);
  });

  afterEach(async () => {
    await road.open();
    for (const one of serving.splice(0)) await stop(one);
    await road.close();
    await rm(folder, { recursive: true, force: true });
  });

  const serve = () => start(['--data', join(folder, 'data')], root, { XTDB_URL: road.url });

  test('gets its reports accepted and contexts made in order and once; all is stored afterwards', async () => {
    const { api } = await serve();
    const { id } = await api.call('openSession', undefined, { system_prompt: 'be brief' });
    await api.call('reportMessages', id, said('before'));
    await api.call('beginTurn', id, {});
    await road.close();
    await api.call('reportMessages', id, said('during'));
    const calls = [{ id: `c-${randomUUID()}`, name: 'read_file', args: { path: 'a.txt' }, content: 'alpha\n' }];
    expect((await api.call('reportToolCalls', id, { calls })).calls).toMatchObject([{ outcome: 'recorded', files: 1 }]);
    expect((await api.call('reportToolCalls', id, { calls })).calls).toMatchObject([{ outcome: 'known' }]);
    expect(await api.call('pin', id, { ids: ['a.txt'] })).toMatchObject({ ok: true });
    const away = await api.call('beginTurn', id, {});
    for (const shown of ['be brief', 'user: before', 'user: during', '\nalpha']) expect(away.text).toContain(shown);
    expect(away.record.basis ?? null).toBeNull();
    // A session that only the database knows is refused at once, with advice.
    expect(
      await api.refused('/v1/sessions', { body: { id: 'known-to-the-database-only', must_exist: true } }),
    ).toMatchObject({
      status: 503,
    });

    await road.open();
    const back = await until(
      () => api.call('beginTurn', id, {}),
      ({ record }) => record.basis !== null,
    );
    expect(back.record.basis).toMatchObject({ tx_id: expect.any(Number) });
    expect(back.text).toBe(away.text);
    const { sessions } = await api.call('listSessions');
    expect(sessions.find((session) => session.id === id)).toMatchObject({ steps: 4, turns: 2 });
  });

  test('keeps a session that began meanwhile, even after the server ends', async () => {
    const first = await serve();
    // Now the server knows its database.
    await first.api.call('listSessions');
    await road.close();
    const { id } = await first.api.call('openSession', undefined, {});
    await first.api.call('reportMessages', id, said('begun without a database'));
    const remote = join(folder, 'data', 'remote');
    const [name = ''] = await readdir(remote);
    const waiting = async () =>
      (await inspectJournals(join(remote, name))).reduce((sum, { pending }) => sum + pending, 0);
    expect(await waiting()).toBeGreaterThan(0);
    await stop(first);
    expect(await waiting()).toBeGreaterThan(0);
    serving.splice(serving.indexOf(first), 1);
    await road.open();
    const { api } = await serve();
    expect(await api.call('openSession', undefined, { id, must_exist: true })).toMatchObject({
      resumed: true,
      step: 1,
    });
    expect((await api.call('beginTurn', id, {})).text).toContain('user: begun without a database');
    await until(waiting, (count) => count === 0);
  });
});
