import { randomUUID } from 'node:crypto';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { collectSession } from '../../../src/bundle/collect-session.js';
import type { CallReport } from '../../../src/client/session/call-report.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { changeByPerson } from '../../../src/client/session/person-steps.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { pageAnswers } from '../../../src/page/server/page-answers.js';
import { mentions, openClient, wholeRead } from '../../support/context.js';
import { servedFolders } from '../../support/served-folders.js';

const served = servedFolders({ args: () => ['--share-sessions'] });
const { api } = served;

/**
 * An answer without the time of reading and without other sessions, because those of a server
 * differ. Other suites may also damage their sessions meanwhile.
 */
function ofItself(answer: unknown, sessions: readonly string[]): unknown {
  const {
    basis: _moment,
    damaged: _others,
    ...rest
  } = JSON.parse(JSON.stringify(answer)) as Readonly<Record<string, unknown>>;
  if (!Array.isArray(rest.sessions)) return rest;
  return {
    ...rest,
    sessions: (rest.sessions as { readonly session: string }[]).filter(({ session }) => sessions.includes(session)),
  };
}

describe('the data of a page', () => {
  const name = `answers${randomUUID().slice(0, 8)}`;
  let client: ContextClient;

  beforeAll(async () => {
    client = await openClient(served.root);
    const write = (path: string, text: string) => writeFile(join(served.root, path), text);
    const session = await client.openSession({ id: name });
    const call = async (tool: string, args: CallReport['args'], content: string, more: Partial<CallReport> = {}) => {
      await session.assemble({ deliver: 'library' });
      await (await session.recordCall({ tool, args, status: 'ok', content, answer: () => content, ...more })).applied;
    };
    const read = async (path: string, content: string) =>
      call('read', { path }, content, { readings: [await wholeRead(client, path)] });
    await write('a.txt', 'first of a\nshared\n');
    await write('b.txt', `${'a line of b\n'.repeat(600)}end\n`);
    await write('c.txt', 'never read');
    await session.setSystemPrompt('Be careful.');
    await session.reportMessage({ role: 'user', text: 'Look.' });
    await call('ls', { path: '.' }, 'a.txt\nb.txt\nc.txt', {
      mentions: await mentions(client, ['a.txt', 'b.txt', 'c.txt']),
    });
    await read('a.txt', 'first of a\nshared\n');
    await read('b.txt', 'much');
    await session.reportMessage({ role: 'assistant', text: 'I looked.' }, undefined, {
      input: 100,
      cacheRead: 50,
      output: 5,
    });
    await write('a.txt', 'second of a\nshared\n');
    await session.setSystemPrompt('Be quick.');
    await session.reportMessage({ role: 'user', text: 'And now?\n'.repeat(100) });
    await read('a.txt', 'second of a\nshared\n');
    for (let i = 1; i <= 2; i += 1)
      await call('bash', { command: `part ${i}` }, `output ${i}\n${'long '.repeat(500 * i)}`);
    const { id } = await client.files.locate('b.txt');
    await call('deactivate', { ids: 'b.txt' }, 'done', { plan: await session.planVerb('deactivate', [id]) });
    await changeByPerson(session, { verb: 'pin', references: ['a.txt'] });
    await session.assemble({ deliver: 'library', shortIds: true });
    await rm(join(served.root, 'b.txt'));
    await session.reportMessage({ role: 'assistant', text: 'It changed.' }, undefined, {
      input: 100,
      cacheRead: 20,
      output: 5,
    });
    await session.assemble({ deliver: 'library', renderer: 'messages' });
    await client.closeSession(session);

    // A fork that a harness continues with contexts around its own list.
    await api.call('forkSession', name, { id: `${name}-fork` });
    await api.call('openSession', undefined, { id: `${name}-fork` });
    await api.call('reportMessages', `${name}-fork`, { messages: [{ role: 'user', content: 'go on' }] });
    await api.call('beginTurn', `${name}-fork`, {});
    const calls = [
      { id: `${name}-call`, name: 'read_file', args: { path: 'a.txt' }, content: 'second of a\nshared\n' },
    ];
    await api.call('reportToolCalls', `${name}-fork`, { calls });
    await api.call('beginTurn', `${name}-fork`, {});
    await api.call('closeSession', `${name}-fork`, {});
  });
  afterAll(() => client.close());

  test('equals a server’s answers to the same requests, for a fork with its shared part', async () => {
    const session = `${name}-fork` as SessionId;
    const timeline = await Timeline.open(await client.delivered(), client.files);
    const steps = await timeline.steps(session);
    const collected = await collectSession({ present: timeline.present, steps }, session);
    const { answers } = await pageAnswers({ timeline, collected, upto: undefined });
    const asked = new Map<string, number>();
    for await (const { path, parameters, body } of answers()) {
      // A page searches its own data.
      if (path === '/v1/search') continue;
      asked.set(path, (asked.get(path) ?? 0) + 1);
      const given = Object.entries(parameters).map(([what, value]): [string, string] => [what, String(value)]);
      const question = `${path}?${new URLSearchParams(given)}`;
      const answer = await api.send(question, { method: 'GET' });
      expect([question, ofItself(body, collected.sessions)]).toEqual([
        question,
        ofItself(answer.body, collected.sessions),
      ]);
    }
    const counted = [...asked.keys()].sort();
    expect(counted).toEqual(
      [
        ...['authors', 'changes', 'context', 'conversation', 'log', 'money', 'notes'],
        ...['report/detail', 'request', 'show', 'stale', 'strip', 'who'],
      ].map((what) => `/v1/${what}`),
    );
    expect(asked.get('/v1/show')).toBeGreaterThan(10);
  });
});
