import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { HarnessClient } from '../../../src/harness/harness-client.js';
import type { HarnessSession, TurnContext, TurnOptions } from '../../../src/harness/harness-session.js';
import type { ReportedMessage } from '../../../src/harness/message-schema.js';
import { PastContexts } from '../../../src/history/rebuild/past-context.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { askPrefixes } from '../../../src/review/ask/prefix-diff.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { openClient } from '../../support/context.js';
import { isPrefix, reply, user } from '../../support/loop-messages.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

type EpochContext = Extract<TurnContext, { readonly format: 'messages' }>;

/** A request as lines, with the part of the harness's list that stays. */
function requestOf({ messages, list }: EpochContext, own: readonly ReportedMessage[] = []): readonly string[] {
  const notes = new Map(list?.inserts.map(({ index, message }) => [index, message]));
  const lines = new Map(list?.references.map(({ index, text }) => [index, text]));
  const stays =
    list === undefined
      ? []
      : own.flatMap((one, i) =>
          i < list.from ? [] : [{ ...one, content: lines.get(i) ?? one.content }, notes.get(i) ?? []].flat(),
        );
  return [...messages, ...stays].map((one) => JSON.stringify(one));
}

describe('contexts of layout epoch from the library (divergence E9)', () => {
  let root: string;
  let harness: HarnessClient;
  let session: HarnessSession;
  let remove: () => Promise<void>;
  let name: string;
  let names = 0;
  let now = Date.parse('2026-11-22T10:00:00Z');
  const file = (of: string) => join(root, `${name}-${of}.txt`);
  const text = (of: string, more = '') =>
    `${Array.from({ length: 30 }, (_, i) => `line ${i} of ${of}`).join('\n')}${more}\n`;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    harness = new HarnessClient(await openClient(root, { clock: () => now }));
  });
  afterAll(async () => {
    await harness.close();
    await remove();
  });
  beforeEach(async () => {
    names += 1;
    name = `handed-${process.pid}-${names}`;
    session = await harness.openSession({ id: name });
    await session.setSystemPrompt('be good');
  });
  afterEach(async () => session.close());

  /** The agent reads a file with a text. */
  async function reads(of: string, content = text(of)): Promise<void> {
    await writeFile(file(of), content);
    names += 1;
    await session.reportToolCall({ id: `${name}_c${names}`, name: 'read', args: { path: file(of) }, content });
  }

  async function request(
    options: Partial<TurnOptions> = {},
    from = session,
  ): Promise<EpochContext & { readonly lines: readonly string[] }> {
    now += 1_000;
    const context = (await from.beginTurn({ layout: 'epoch', ...options })) as EpochContext;
    return { ...context, lines: requestOf(context, options.messages) };
  }

  async function verified(): Promise<number> {
    const { contexts } = await verifySession(await harness.client.delivered(), name);
    expect(contexts.unequal).toEqual([]);
    return contexts.total;
  }

  test('without a harness list, have the chat, and outputs as contents, and extend the previous one', async () => {
    const first = await request({ messages: [user(`begin ${name}`)] });
    expect(first).toMatchObject({
      format: 'messages',
      system: 'be good',
      epoch: { number: 1, begins: true, reason: 'first' },
    });
    expect(first.list).toBeUndefined();
    expect(first.messages).toEqual([{ section: 'chat', role: 'user', parts: [{ text: `begin ${name}` }] }]);
    await session.reportMessages([reply('I look at a')]);
    await reads('a');
    const second = await request();
    expect(isPrefix(first.lines, second.lines)).toBe(true);
    expect(second.lines.join('\n').split('line 7 of a').length).toBe(2);
    expect(second.messages[1]).toMatchObject({
      section: 'chat',
      role: 'assistant',
      parts: [{ text: 'I look at a' }, {}],
    });
    // A second read shows an unchanged file as one line, and a changed file as its changed lines
    // and a line.
    await reads('a');
    const third = await request();
    expect(isPrefix(second.lines, third.lines)).toBe(true);
    expect(third.lines.join('\n').split('line 7 of a').length).toBe(2);
    await reads('a', text('a', '\none more'));
    const fourth = await request();
    expect(isPrefix(third.lines, fourth.lines)).toBe(true);
    const added = fourth.lines.slice(third.lines.length).join('\n');
    expect(added).toMatch(/changed=lines\\n@@ -30,1 \+30,2 @@\\n line 29 of a\\n\+one more/);
    expect(added).not.toContain('line 7 of a');
    expect(added).toMatch(/ACTIVE_CONTENT id=\S+ args=…\S+\\nfile_ref id=/);
    await session.reportToolCall({ id: `${name}_run`, name: 'bash', args: { command: 'run' }, content: 'it ran' });
    await writeFile(file('b'), text('b'));
    await session.reportToolCall({ id: `${name}_ls`, name: 'ls', args: { path: root }, content: `${name}-b.txt` });
    await session.verb('activate', [file('b')]);
    const fifth = await request();
    expect(isPrefix(fourth.lines, fifth.lines)).toBe(true);
    expect(fifth.lines.slice(fourth.lines.length).join('\n')).toContain('it ran');
    expect(fifth.lines.slice(fourth.lines.length).join('\n')).toContain('line 7 of b');
    // Nothing new yields the same request and no second record.
    expect((await request()).lines).toEqual(fifth.lines);
    expect(await verified()).toBe(5);
  });

  test('end an epoch at a user message if the cache is cold or on request; the base has the closed turns', async () => {
    await request({ messages: [user(`begin ${name}`)] });
    for (let i = 0; i < 8; i++)
      await session.reportToolCall({
        id: `${name}_r${i}`,
        name: 'bash',
        args: {},
        content: `output ${i} ${'of it '.repeat(90)}`,
      });
    const long = await request();
    await session.reportMessages([reply('done')]);
    const second = await request({ messages: [user('and now?')], tidy: true });
    expect(second.epoch).toEqual({ number: 2, begins: true, reason: 'asked' });
    expect(second.messages.map(({ section }) => section)).toEqual(['chat', 'active', 'chat']);
    expect(second.messages.at(-1)).toEqual({ section: 'chat', role: 'user', parts: [{ text: 'and now?' }] });
    expect(second.lines.join('\n')).not.toContain('output 1 of it');
    for (let i = 0; i < 10; i++) {
      await session.reportToolCall({
        id: `${name}_s${i}`,
        name: 'bash',
        args: {},
        content: `more ${i} ${'of it '.repeat(90)}`,
      });
      if (i % 5 === 4) await request();
    }
    await session.reportMessages([reply('done again')]);
    now += 3_600_000;
    const third = await request({ messages: [user('after lunch')] });
    expect(third.epoch).toEqual({ number: 3, begins: true, reason: 'cold' });
    expect(await verified()).toBe(6);

    const store = await harness.client.delivered();
    const timeline = await Timeline.open(store);
    const past = await new PastContexts(timeline).at(long.record.session, { moment: { kind: 'turn', turn: 1 } });
    expect(past).toMatchObject({ source: 'record', matches: true, delivered: 'library', sha256: long.record.sha256 });
    const { before, notes } = JSON.parse(past.text) as { before: unknown[]; notes: { message: unknown }[] };
    expect([...before, ...notes.map(({ message }) => message)].map((one) => JSON.stringify(one))).toHaveLength(
      long.lines.length,
    );
    // Contexts rebuilt together, with three epochs at a time, equal those rebuilt one by one.
    const records = await timeline.records(long.record.session);
    const together = await new PastContexts(await Timeline.open(store)).ofRecords(records, async (context) => context);
    expect(new Set(records.map(({ epoch }) => epoch?.number)).size).toBe(3);
    for (const [i, record] of records.entries())
      expect(together[i]).toEqual(await new PastContexts(await Timeline.open(store)).ofRecord(record));
    expect(together.every(({ matches }) => matches)).toBe(true);
    const { compared } = await askPrefixes(timeline, { name, count: countHere });
    expect(compared.map(({ isPrefix: is, cause, answers }) => [is, cause?.epoch?.reason, answers])).toEqual([
      [false, 'cold', undefined],
      [true, undefined, undefined],
      [true, undefined, undefined],
      [false, 'asked', undefined],
      [true, undefined, undefined],
    ]);
  });

  test('keep part of a whole harness list, with our messages between', async () => {
    await writeFile(file('a'), text('a'));
    const messages = [user(`begin ${name}`)];
    const first = await request({ mode: 'history', messages });
    expect(first).toMatchObject({ messages: [], list: { from: 0, inserts: [] } });
    messages.push({ ...reply(''), tool_calls: [{ id: `${name}_c1`, name: 'read', arguments: { path: file('a') } }] });
    messages.push({ role: 'tool', tool_call_id: `${name}_c1`, content: text('a') });
    const second = await request({ mode: 'history', messages: [...messages] });
    expect(isPrefix(first.lines, second.lines)).toBe(true);
    expect(second.list?.inserts).toEqual([]);
    expect(second.lines.join('\n').split('line 7 of a').length).toBe(2);
    await writeFile(file('b'), text('b'));
    await session.verb('activate', [file('b')], { callId: `${name}_c2` });
    messages.push({
      ...reply(''),
      tool_calls: [{ id: `${name}_c2`, name: 'activate', arguments: { ids: [file('b')] } }],
    });
    messages.push({ role: 'tool', tool_call_id: `${name}_c2`, content: 'activated' });
    const noted = await request({ mode: 'history', messages: [...messages] });
    expect(isPrefix(second.lines, noted.lines)).toBe(true);
    expect(noted.list?.inserts.map(({ index }) => index)).toEqual([4]);
    messages.push({ ...reply(''), tool_calls: [{ id: `${name}_c3`, name: 'read', arguments: { path: file('a') } }] });
    messages.push({ role: 'tool', tool_call_id: `${name}_c3`, content: text('a') });
    const again = await request({ mode: 'history', messages: [...messages] });
    expect(isPrefix(noted.lines, again.lines)).toBe(true);
    expect(again.list?.references).toMatchObject([
      { index: 6, callId: `${name}_c3`, text: expect.stringContaining('is unchanged') },
    ]);
    expect(again.lines.join('\n').split('line 7 of a').length).toBe(2);
    // The recorded chat is another list.
    const own = await request();
    expect(own.epoch).toEqual({ number: 2, begins: true, reason: 'history' });
    messages.push(reply('done'), user('and now?'));
    const third = await request({ mode: 'history', messages: [...messages] });
    expect(third).toMatchObject({ epoch: { number: 3, reason: 'history' }, list: { from: 8, inserts: [] } });
    expect(await verified()).toBe(6);
  });

  test('continue the epoch in another process with the same bytes', async () => {
    await request({ messages: [user(`begin ${name}`)] });
    await reads('a');
    const last = await request();
    await session.close();
    const other = new HarnessClient(await openClient(root, { clock: () => now }));
    try {
      const resumed = await other.resumeSession(name);
      await resumed.reportToolCall({ id: `${name}_run`, name: 'bash', args: {}, content: 'it ran' });
      const next = await request({}, resumed);
      expect(next.epoch).toEqual({ number: 1, begins: false, reason: 'first' });
      expect(isPrefix(last.lines, next.lines)).toBe(true);
      await resumed.close();
    } finally {
      await other.close();
    }
    expect(await verified()).toBe(3);
  });

  test('are refused without a record if they are impossible', async () => {
    const { seq } = session.session.state;
    const refusal = { name: 'HarnessError', code: 'not-in-epochs' };
    await expect(session.beginTurn({ layout: 'epoch', format: 'text', messages: [user('a')] })).rejects.toMatchObject(
      refusal,
    );
    await expect(session.beginTurn({ layout: 'epoch', mode: 'history', messages: [reply('a')] })).rejects.toMatchObject(
      refusal,
    );
    expect(session.session.state.seq).toBe(seq);
  });
});
