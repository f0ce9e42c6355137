import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { TyrumReports } from '../../../src/contracts/tyrum/read-reports.js';
import { LoopSession } from '../../../src/extensions/loop/loop-session.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { sessionStrip } from '../../../src/page/server/session-strip.js';
import { askContext, askTurns, askWho } from '../../../src/review/ask/ask.js';
import { reportDetail, reportList } from '../../../src/review/ask/context-report.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { askHere } from '../../support/ask-here.js';
import { openClient, wholeRead } from '../../support/context.js';
import { call, reply, user } from '../../support/loop-messages.js';
import { suiteData, temporaryRoot } from '../../support/mcp-clients.js';

describe('requests that a model got without Palimpsest (decision E12)', () => {
  const name = `unseen${randomUUID().slice(0, 8)}`;
  const [overMcp, inLoop, replayed] = [`${name}-mcp`, `${name}-loop`, `${name}-replay`];
  let client: ContextClient;
  let root: string;
  let remove: () => Promise<void>;

  const open = async () => Timeline.open(await client.delivered(), client.files);
  const ask = (...args: string[]) => askHere([...args, '--data', suiteData()]);
  const json = async (...args: string[]) => JSON.parse((await ask(...args, '--json')).stdout);

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    client = await openClient(root);
    await writeFile(join(root, 'a.ts'), 'one\n');
    // An agent over plain MCP: only its calls are visible, its requests are its own.
    const session = await client.openSession({ id: overMcp });
    const { applied } = await session.recordCall({
      tool: 'read',
      args: { path: 'a.ts' },
      status: 'ok',
      content: 'one\n',
      readings: [await wholeRead(client, 'a.ts')],
      answer: () => 'one\n',
    });
    await applied;
    await client.closeSession(session);

    // A loop whose second turn used the harness's own list right after our record was stored.
    const loop = new LoopSession(client, { id: inLoop, delivered: 'pi' });
    const read = call('call_1', 'read', { path: 'a.ts' }, 'one\n');
    const first = [user(`begin ${name}`, 'u1'), ...read];
    await loop.context({ messages: first, system: 'be good' });
    await loop.handed({ sha256: 'a'.repeat(64) as never, chars: 10, messages: 3 });
    await loop.context({ messages: [...first, reply('done', 'a1'), user('and now?', 'u2')] });
    await loop.handed({ sha256: 'b'.repeat(64) as never, chars: 10, messages: 5 });
    await loop.event({ kind: 'bypassed', detail: 'no answer within 2000 ms' });
    await loop.close();

    const replay = await client.openSession({ id: replayed });
    await replay.reportMessage({ role: 'user', text: 'begin' });
    await replay.assemble({ deliver: 'replay' });
    await client.closeSession(replay);
  });
  afterAll(async () => {
    await client.close();
    await remove();
  });

  test('show no text as sent over MCP: context, report and Tyrum’s report say that it was not seen', async () => {
    const timeline = await open();
    for (const reference of [
      overMcp,
      `${overMcp}@turn:1`,
      `${overMcp}@step:1`,
      `${overMcp}@${new Date().toISOString()}`,
    ]) {
      await expect(askContext(timeline, reference, {})).rejects.toMatchObject({
        code: 'not-seen',
        message: expect.stringContaining('not seen by Palimpsest'),
      });
    }
    await expect(reportDetail(timeline, { reference: overMcp, text: {}, count: countHere })).rejects.toMatchObject({
      code: 'not-seen',
    });
    expect(await reportList(timeline, { reference: overMcp, count: countHere })).toMatchObject({
      reported: [],
      unseen: [1],
    });
    expect(await new TyrumReports(timeline, countHere).list({ conversation: overMcp })).toEqual([]);
    expect((await sessionStrip(timeline, overMcp, {})).calls).toMatchObject([{ turn: 1, kind: 'unseen' }]);
  });

  test('show the state of the session on demand, marked as not sent to a model', async () => {
    const timeline = await open();
    const context = await askContext(timeline, `${overMcp}@turn:1`, { assemble: true });
    expect(context).toMatchObject({ kind: 'unseen', source: 'assembled', text: expect.stringContaining('one\n') });
    const { reported } = await reportList(timeline, { reference: overMcp, assemble: true, count: countHere });
    expect(reported).toMatchObject([{ context: { kind: 'unseen', turn: 1 } }]);
  });

  test('separate sent from unseen in who', async () => {
    const timeline = await open();
    const [object] = (await askTurns(timeline, { session: overMcp })).turns[0]?.changes.index.slice(0, 1) ?? [];
    const { sightings } = await askWho(timeline, { object: object ?? '' });
    expect(sightings.find(({ session }) => session === overMcp)).toMatchObject({
      active: [1],
      sent: [],
      transcript: [],
      unseen: [1],
    });
    expect(sightings.find(({ session }) => session === inLoop)).toMatchObject({ sent: [1], unseen: [2] });
  });

  test('do not show a record as sent if its list did not go out', async () => {
    const timeline = await open();
    expect(await askContext(timeline, `${inLoop}@turn:1`, {})).toMatchObject({ kind: 'sent', matches: true });
    await expect(askContext(timeline, `${inLoop}@turn:2`, {})).rejects.toMatchObject({
      code: 'not-seen',
      message: expect.stringContaining('the nearest records are at step'),
    });
    const list = await reportList(timeline, { reference: inLoop, count: countHere });
    expect(list.reported.map(({ context }) => [context.turn, context.kind])).toEqual([[1, 'sent']]);
    expect(list.unseen).toEqual([2]);
    const strip = await sessionStrip(timeline, inLoop, {});
    expect(strip.calls).toMatchObject([
      { turn: 1, kind: 'sent' },
      { turn: 2, kind: 'unseen' },
    ]);
    expect(strip.marks).toContainEqual(expect.objectContaining({ kind: 'event', event: 'bypassed' }));
  });

  test('show a bypassed call in the log', async () => {
    const { turns } = await askTurns(await open(), { session: inLoop });
    expect(turns[0]?.events).toMatchObject([{ kind: 'bypassed', detail: 'no answer within 2000 ms' }]);
    expect((await ask('log', inLoop)).stdout).toContain(
      "a model call used the harness's own list: no answer within 2000 ms",
    );
    expect((await json('log', inLoop)).turns[0].events).toMatchObject([
      { kind: 'bypassed', detail: 'no answer within 2000 ms' },
    ]);
  });

  test('show an epoch once even if its first request was handed out twice, with two prompts', async () => {
    const id = `${name}-prompts`;
    const loop = new LoopSession(client, { id, delivered: 'opencode' });
    await loop.context({ messages: [user(`begin ${id}`, 'u1')], system: 'expected' });
    const list = { sha256: 'c'.repeat(64) as never, chars: 1, messages: 1 };
    await loop.handed({ ...list, system: 'expected' });
    await loop.handed({ ...list, system: 'another' });
    await loop.close();
    const timeline = await open();
    expect((await timeline.records(id as never)).length).toBe(2);
    expect((await askTurns(timeline, { session: id })).turns.flatMap(({ epochs }) => epochs)).toHaveLength(1);
    expect((await sessionStrip(timeline, id, {})).marks.filter(({ kind }) => kind === 'epoch')).toHaveLength(1);
  });

  test('show for a replay its transcript, not the requests of a model', async () => {
    expect(await askContext(await open(), `${replayed}@turn:1`, {})).toMatchObject({
      kind: 'transcript',
      source: 'transcript',
      matches: undefined,
      text: '--- message, step 1 ---\nuser: begin\n',
    });
    const { stdout } = await ask('context', `${replayed}@turn:1`);
    expect(stdout).toContain('from the transcript, which does not have');
    expect((await ask('context', `${replayed}@turn:1`, '--assemble')).stdout).toContain('NOT SENT');
  });

  test('are distinguished by exit code and JSON on the command line', async () => {
    const unseen = await ask('context', `${overMcp}@turn:1`);
    expect([unseen.code, unseen.stdout]).toEqual([3, '']);
    expect(unseen.stderr).toContain('not seen by Palimpsest');
    expect(await json('context', `${overMcp}@turn:1`)).toMatchObject({ error: { code: 'not-seen' } });
    expect((await ask('report', 'detail', overMcp)).code).toBe(3);
    expect((await ask('report', 'list', overMcp)).stdout).toContain('not seen by Palimpsest: model calls in turns 1');
    const assembled = await ask('context', `${overMcp}@turn:1`, '--assemble');
    expect([assembled.code, assembled.stdout]).toEqual([0, expect.stringContaining('NOT SENT')]);
    expect(await json('context', `${inLoop}@turn:1`)).toMatchObject({ kind: 'sent', matches: true });
    const who = await ask('who', 'a.ts', '--session', overMcp);
    expect(who.stdout).toContain("Palimpsest did not see the model's requests in turns 1");
    expect(who.stdout).not.toContain('never in full');
  });
});
