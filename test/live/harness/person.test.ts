import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import type * as z from 'zod';
import { openClient } from '../../support/context.js';
import { ALL_QUESTIONS, ALL_REVIEW_ANSWERS } from '../../support/contracts.js';
import { suiteClientFolder, suiteData } from '../../support/mcp-clients.js';
import { runCli } from '../../support/run-cli.js';
import { servedFolders } from '../../support/served-folders.js';
import { until } from '../../support/until.js';

const LONG = 'a line that is long enough to cost something\n'.repeat(40);
const served = servedFolders({ folders: [{ 'a.txt': LONG, 'b.txt': 'beta\n', 'c.txt': 'gamma\n' }] });
const { api } = served;
const run = randomUUID().slice(0, 8);

type Questions = typeof ALL_QUESTIONS;
type Answer<Id extends keyof Questions> = Questions[Id]['answer'] extends infer Name extends
  keyof typeof ALL_REVIEW_ANSWERS
  ? z.input<(typeof ALL_REVIEW_ANSWERS)[Name]>
  : never;

async function ask<Id extends keyof Questions>(
  id: Id,
  parameters: Readonly<Record<string, string>>,
): Promise<Answer<Id>> {
  const { path, answer } = ALL_QUESTIONS[id];
  const { status, body } = await api.send(`${path}?${new URLSearchParams(parameters)}`, { method: 'GET' });
  expect([status, body]).toEqual([200, expect.anything()]);
  return ALL_REVIEW_ANSWERS[answer as keyof typeof ALL_REVIEW_ANSWERS].parse(body) as Answer<Id>;
}

/** A session whose agent has read a file and listed the folder. */
async function worked(name: string): Promise<{ readonly id: string; readonly file: string }> {
  const id = `${name}-${run}`;
  await api.call('openSession', undefined, { id });
  await api.call('reportMessages', id, { messages: [{ role: 'user', content: 'look' }] });
  const calls = [
    { id: `${name}-read-${run}`, name: 'read_file', args: { path: 'a.txt' }, content: LONG },
    { id: `${name}-ls-${run}`, name: 'Ls', content: 'a.txt\nb.txt\nc.txt' },
  ];
  await api.call('reportToolCalls', id, { calls });
  await api.call('beginTurn', id, {});
  const [file = ''] = (await api.call('getSession', id)).active;
  return { id, file };
}

describe('a person in a session', () => {
  test('changes the sets while the agent works, at the announced price, and is recorded as the author', async () => {
    const { id, file } = await worked('verbs');
    const price = await ask('verbPrice', { session: id, object: 'a.txt', verb: 'deactivate' });
    expect(price).toMatchObject({
      object: file,
      outcome: 'done',
      layout: 'ssot',
      is_exact: true,
      per_call_from_border: null,
    });
    expect(price.text).toBeGreaterThan(200);
    const before = await ask('request', { session: id });
    const { turn, step } = await api.call('getSession', id);
    const let_go = await api.call('changeSets', id, { verb: 'deactivate', ids: ['a.txt'] });
    expect(let_go).toMatchObject({ session: id, step: step + 1, entries: [{ ok: true, id: file, changes: true }] });
    await api.call('beginTurn', id, {});
    const after = await ask('request', { session: id });
    const tokens = (view: typeof before): number => view.request?.tokens ?? Number.NaN;
    // The text is removed from the request, and its call shows its own output again.
    expect(Math.abs(tokens(after) - tokens(before) - price.per_call)).toBeLessThanOrEqual(2);
    expect(await api.call('getSession', id)).toMatchObject({ turn, step: step + 1 });

    const { changes, prefix } = await ask('changes', { session: id });
    expect(prefix?.cause).toMatchObject({
      kind: 'verb',
      why: expect.stringContaining(`step ${step + 1}, a person`),
      step: step + 1,
    });
    expect(changes.find(({ object }) => object === file)).toMatchObject({
      kind: 'collapsed',
      actor: 'person',
      step: step + 1,
    });
    const { marks } = await ask('strip', { session: id });
    expect(marks.filter(({ kind }) => kind === 'verb')).toMatchObject([
      { tool: 'deactivate', by: 'person', object: file, step: step + 1 },
    ]);
    const [last] = (await ask('log', { session: id, limit: '1' })).turns ?? [];
    expect(last?.person).toMatchObject([
      { step: step + 1, undoes: null, changes: { deactivate: [file], activate: [], pin: [], unpin: [] } },
    ]);
    expect((await ask('verify', { session: id })).ok).toBe(true);

    // Setting the current state records no step. Impossible ids are reported one by one.
    const again = await api.call('changeSets', id, { verb: 'deactivate', ids: ['a.txt', 'nothing.txt'] });
    expect(again).toMatchObject({
      step: null,
      entries: [
        { ok: false, failure: 'not-active' },
        { ok: false, failure: 'unknown' },
      ],
    });
    const unread = await api.call('changeSets', id, { verb: 'activate', ids: ['b.txt'] });
    expect(unread.step).toBe(step + 2);
    expect((await api.call('beginTurn', id, {})).text).toContain('beta');
    expect((await ask('verbPrice', { session: id, object: 'c.txt', verb: 'pin' })).per_call).toBe(0);
  });

  test('undoes one step, once, and not over later changes', async () => {
    const { id, file } = await worked('undo');
    const { step = 0 } = await api.call('changeSets', id, { verb: 'pin', ids: [file] });
    const before = await api.call('getSession', id);
    expect(await api.call('undoStep', id, { step, plan: true })).toEqual({
      session: id,
      undoes: step,
      step: null,
      changes: { unpin: [file] },
    });
    expect(await api.call('getSession', id)).toEqual(before);
    const undone = await api.call('undoStep', id, { step });
    expect(undone).toEqual({ session: id, undoes: step, step: before.step + 1, changes: { unpin: [file] } });
    expect((await api.call('getSession', id)).pinned).toEqual([]);
    const path = `/v1/sessions/${id}/undo`;
    expect(await api.refused(path, { body: { step } })).toMatchObject({ status: 409, code: 'changed-since' });
    expect(await api.refused(path, { body: { step: 1 } })).toMatchObject({ status: 409, code: 'nothing-to-undo' });
    expect(await api.refused(path, { body: { step: 999 } })).toMatchObject({ status: 409, code: 'sequence-gap' });
    expect((await api.call('getSession', id)).step).toBe(before.step + 1);
    const [last] = (await ask('log', { session: id, limit: '1' })).turns ?? [];
    expect(last?.person.map(({ step: own, undoes }) => [own, undoes])).toEqual([
      [step, null],
      [before.step + 1, step],
    ]);
  });

  test('is refused, like the command line, if another process has the session open; the error names it', async () => {
    const { id, file } = await worked('held');
    const { step = 0 } = await api.call('changeSets', id, { verb: 'pin', ids: [file] });
    const flags = ['undo', id, String(step), '--data', suiteData()];
    const held = await runCli(flags);
    expect([held.code, held.stderr]).toEqual([1, expect.stringMatching(/is open in process \d+/)]);
    await api.call('closeSession', id);
    const other = await openClient(served.root, {
      dataDir: suiteClientFolder(),
      journal: false,
      track: false,
      what: 'another agent',
    });
    const session = await other.openSession({ id });
    const refused = await api.refused(`/v1/sessions/${id}/sets`, { body: { verb: 'unpin', ids: [file] } });
    expect(refused).toMatchObject({ status: 409, code: 'lease-held' });
    expect(refused.problem.detail).toMatch(/another agent/);
    await other.closeSession(session);
    await other.close();
    const plan = await runCli([...flags, '--plan']);
    expect([plan.code, plan.stdout]).toEqual([0, expect.stringContaining('unpin')]);
    const done = await runCli([...flags, '--json']);
    expect([done.code, JSON.parse(done.stdout)]).toEqual([
      0,
      { session: id, undoes: step, step: (step ?? 0) + 1, changes: { unpin: [file] } },
    ]);
  });

  test('leaves a fork open that its agent opened during its creation', async () => {
    const { id } = await worked('forked');
    const fork = `${id}-fork`;
    const forking = api.call('forkSession', id, { id: fork });
    await until(
      () => api.send('/v1/sessions', { body: { id: fork, must_exist: true } }),
      ({ status }) => status < 300,
    );
    await forking;
    await api.call('reportMessages', fork, { messages: [{ role: 'user', content: 'go on' }] });
  });

  test('forks, compares files with the agent’s, and writes them into a new folder inside the served ones', async () => {
    const { id, file } = await worked('files');
    const { step } = await api.call('getSession', id);
    const forked = await api.call('forkSession', id, { at: `step:${step - 1}`, id: `files-fork-${run}` });
    expect(forked).toEqual({ id: `files-fork-${run}`, parent: { session: id, at: step - 1 } });
    expect(await api.refused(`/v1/sessions/${id}/fork`, { body: { at: 'step:999' } })).toMatchObject({
      status: 404,
      code: 'beyond-end',
    });
    expect(await api.refused(`/v1/sessions/${id}/fork`, { body: { id } })).toMatchObject({
      status: 409,
      code: 'session-exists',
    });

    await writeFile(join(served.root, 'a.txt'), 'other\n');
    const plan = await ask('restorePlan', { session: id, at: `step:${step}` });
    expect(plan.files.find((one) => one.id === file)).toMatchObject({
      state: expect.stringMatching(/^(changed|newer-outside)$/),
    });
    const copied = await api.call('copyFiles', id, { at: `step:${step}`, to: 'as-it-was' });
    expect(copied).toMatchObject({
      session: id,
      step,
      folder: join(served.root, 'as-it-was'),
      written: expect.arrayContaining(['a.txt']),
    });
    expect(await readFile(join(served.root, 'as-it-was', 'a.txt'), 'utf8')).toBe(LONG);
    const path = `/v1/sessions/${id}/restore`;
    expect(await api.refused(path, { body: { to: 'as-it-was' } })).toMatchObject({ code: 'folder-in-use' });
    expect(await api.refused(path, { body: { to: '../outside' } })).toMatchObject({
      status: 403,
      code: 'outside-roots',
    });
    expect(await api.refused(path, { body: { to: '/etc/new' } })).toMatchObject({ status: 403, code: 'outside-roots' });
  });
});
