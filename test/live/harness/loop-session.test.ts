import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { type LoopOptions, LoopSession } from '../../../src/extensions/loop/loop-session.js';
import { HarnessSession } from '../../../src/harness/harness-session.js';
import type { ReportedMessage } from '../../../src/harness/message-schema.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { StoredMask } from '../../../src/redaction/stored-mask.js';
import { askTurns } from '../../../src/review/ask/ask.js';
import { logAnswer } from '../../../src/review/http/review-answers.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { toStepParts } from '../../../src/store/step-part.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { openClient, testAddress } from '../../support/context.js';
import { LateAnswers } from '../../support/late-answers.js';
import { call, callModel, reply, user } from '../../support/loop-messages.js';
import { temporaryRoot } from '../../support/mcp-clients.js';

const shell = (n: number, output = `output ${n} of the shell`): readonly ReportedMessage[] =>
  call(`call_${n}`, 'bash', { command: `run ${n}` }, output);
const renamed = (messages: readonly ReportedMessage[]): readonly ReportedMessage[] =>
  messages.map((message) => (message.id === undefined ? message : { ...message, id: `new-${message.id}` }));

describe('a session in a harness’s loop', () => {
  let root: string;
  let client: ContextClient;
  let remove: () => Promise<void>;
  let name: string;
  let names = 0;
  /** No other session may begin like this: equal beginnings count as a fork. */
  let first: readonly ReportedMessage[];

  beforeEach(async () => {
    ({ root, remove } = await temporaryRoot());
    client = await openClient(root);
    names += 1;
    name = `loop-${process.pid}-${names}`;
    first = [
      user('begin', 'u1'),
      ...shell(1, `output 1 of the shell in ${name}`),
      ...shell(2),
      reply(`begun ${name}`, 'a1'),
    ];
  });
  afterEach(async () => {
    await client.close();
    await remove();
  });

  const loop = (id: string, parent?: string, from = client, options: Partial<LoopOptions> = {}): LoopSession =>
    new LoopSession(from, {
      id,
      delivered: 'pi',
      layout: 'ssot',
      ...(parent === undefined ? {} : { parent }),
      ...options,
    });
  const words = (session: LoopSession): readonly string[] =>
    (session.session?.state.turns ?? []).flatMap(({ messages }) =>
      messages.filter(({ text }) => text !== '').map(({ text }) => text),
    );
  const events = (session: LoopSession) => (session.session?.state.marks ?? []).flatMap(({ event }) => event ?? []);

  test('ignores a damaged session among its possible parents', async () => {
    const damaged = await client.openSession();
    await damaged.reportMessage({ role: 'user', text: 'begin' });
    await client.closeSession(damaged);
    await client.snapshot();
    const { part } = toStepParts({ session: damaged.id, seq: 2, turn: 1, at: 1, changes: {} });
    const xtdb = new XtdbClient(testAddress());
    await xtdb.execute([{ op: 'put', doc: part }]);
    await xtdb.close();
    const session = loop(name);
    expect(await session.context({ messages: [...first, user('and now?', 'u2')], system: 'be good' })).toBeDefined();
    expect(words(session)).toContain('and now?');
    await session.close();
  });

  test('keeps the running turn from its first message; closed turns become text, collapsed results lines', async () => {
    const session = loop(name);
    expect(await session.context({ messages: [user('begin', 'u1')], system: 'be good' })).toMatchObject({
      from: 0,
      before: [],
      after: [],
    });
    const many = Array.from({ length: 7 }, (_, i) => shell(10 + i)).flat();
    const context = await session.context({ messages: [...first, user('and now?', 'u2'), ...many] });
    expect(context?.from).toBe(first.length);
    expect(context?.before.map(({ section }) => section)).toEqual(['pool', 'chat']);
    expect(context?.references.map(({ index }) => index)).toEqual([first.length + 2, first.length + 4]);
    expect(context?.references[0]?.text).toMatch(/^toolcall_ref id=call_10\S* tool=bash status=ok$/);
    expect(context?.after.flatMap(({ parts }) => parts.map(({ text }) => text)).join()).toContain(
      'output 1 of the shell',
    );
    const record = await session.handed({ sha256: 'a'.repeat(64) as never, chars: 10, messages: 12 });
    expect(record).toMatchObject({ delivered: 'pi', renderer: 'around', handed: { messages: 12 } });
    await session.close();
  });

  test.each([[true], [false]])('masks results only if the setting says so: %s', async (inAnswers) => {
    const secret = 'abcDEF123456ghiJKL';
    const mask = new StoredMask({ key: Buffer.alloc(32, 7), level: 'known', inAnswers });
    const own = await openClient(root, { mask });
    for (const layout of ['ssot', 'epoch'] as const) {
      const session = loop(`${name}-${layout}-${inAnswers}`, undefined, own, { layout });
      const begun = [user(`begin ${layout}`, 'u1')];
      await callModel(session, begun);
      const { text } = await callModel(session, [...begun, ...shell(1), ...shell(2, `API_KEY=${secret}`)]);
      // A new epoch is made from records, which have the marks.
      const isMade = layout === 'epoch' || inAnswers;
      expect([text.includes(secret), text.includes(mask.mark(secret))]).toEqual([!isMade, isMade]);
      const id = session.session?.id as SessionId;
      await session.close();
      expect(await verifySession(await own.delivered(), id)).toMatchObject({ ok: true, contexts: { equal: 2 } });
    }
    await own.close();
  });

  test('compares a followed list once, and again if it or the session differs', async () => {
    const reports = jest.spyOn(HarnessSession.prototype, 'reportMessages');
    try {
      const session = loop(name);
      const list = [...first, user('and now?', 'u2'), ...shell(3)];
      await session.follow({ messages: list, system: 'be good' });
      expect(reports).toHaveBeenCalledTimes(1);
      const context = await session.context({ messages: [...list], system: 'be good' });
      expect(reports).toHaveBeenCalledTimes(1);
      expect(context).toMatchObject({ from: first.length });
      const { text, ok } = await session.verb('pin', ['call_3'], undefined);
      expect([ok, text]).toEqual([true, expect.any(String)]);
      expect(await session.context({ messages: [...list] })).toMatchObject({ from: first.length });
      expect(reports).toHaveBeenCalledTimes(2);
      // A message that is another object may have another text.
      const last = { ...(list.at(-1) as ReportedMessage), content: 'another output' };
      await session.context({ messages: [...list.slice(0, -1), last] });
      expect(reports).toHaveBeenCalledTimes(3);
      await session.context({ messages: [...list.slice(0, -1), last, user('go on', 'u3')] });
      expect(words(session).slice(-2)).toEqual(['and now?', 'go on']);
      await session.close();
    } finally {
      reports.mockRestore();
    }
  });

  test('delivers a list again if the prompt that was sent differs from the expected one', async () => {
    const session = loop(name);
    await session.context({ messages: [user('begin', 'u1'), ...first.slice(1)], system: 'be good' });
    const list = { sha256: 'd'.repeat(64) as never, chars: 1, messages: 1 };
    const expected = await session.handed(list);
    const sent = await session.handed({ ...list, system: 'be better' });
    const prompt = (record: typeof sent) => record?.sections.find(({ name: section }) => section === 'system')?.chars;
    expect([prompt(expected), prompt(sent)]).toEqual(['be good'.length, 'be better'.length]);
    const { contexts } = await verifySession(await client.delivered(), session.session?.id ?? '');
    expect([contexts.total, contexts.unequal]).toEqual([2, []]);
    await session.close();
  });

  test('stores the provider’s usage of a model call with its message, once, and the log shows it', async () => {
    const session = loop(name);
    const usage = { input: 3, output: 40, cache_read: 1_200, cache_write: 300 };
    const [begin, call, result, ...others] = first as [
      ReportedMessage,
      ReportedMessage,
      ReportedMessage,
      ...ReportedMessage[],
    ];
    const history = [begin, { ...call, usage }, result, ...others];
    await session.follow({ messages: history });
    await session.follow({ messages: history });
    const id = session.session?.id ?? '';
    const { point, turns } = await askTurns(await Timeline.open(await client.delivered(), client.files), {
      session: id,
    });
    const said = turns.flatMap(({ messages }) => messages).filter((message) => message.usage !== undefined);
    expect(said).toEqual([
      { seq: 2, role: 'assistant', text: '', usage: { input: 3, output: 40, cacheRead: 1_200, cacheWrite: 300 } },
    ]);
    expect(logAnswer(point.basis, { turns })).toMatchObject({
      turns: [{ messages: [{ role: 'user' }, { step: 2, usage: { cache_read: 1_200 } }, {}, {}] }],
    });
    await session.close();
  });

  test('records a prompt that is known only with the list', async () => {
    const session = loop(name);
    await session.context({ messages: [user('begin', 'u1')] });
    const record = await session.handed({
      sha256: 'b'.repeat(64) as never,
      chars: 1,
      messages: 1,
      system: 'be better',
    });
    expect(record?.sections).toEqual([expect.objectContaining({ name: 'system', chars: 'be better'.length })]);
    await session.close();
  });

  test('records nothing twice if a history is repeated after a restart, even with repeated words', async () => {
    const history = [...first, user('go on', 'u2'), reply('yes', 'a2')];
    const before = loop(name);
    await before.follow({ messages: history });
    await before.close();
    // The other process shares no data folder and sees only the database.
    await client.backpressure(0, 240_000);
    const other = await openClient(root);
    const after = loop(name, undefined, other);
    await after.follow({ messages: [...history, user('go on', 'u3'), reply('yes', 'a3')] });
    expect(words(after)).toEqual(['begin', `begun ${name}`, 'go on', 'yes', 'go on', 'yes']);
    expect(events(after)).toEqual([]);
    await after.close();
    await other.close();
  });

  test('continues undone work in a branch, which a restart finds', async () => {
    const session = loop(name);
    await session.follow({ messages: [...first, user('this way', 'u2'), reply('wrong', 'a2')] });
    const other = [...first, user('that way', 'u3')];
    const context = await session.context({ messages: other });
    expect(context?.session).toBe(`${name}.2`);
    expect(words(session)).toEqual(['begin', `begun ${name}`, 'that way']);
    expect(events(session)).toEqual([expect.objectContaining({ kind: 'forked', detail: name })]);
    await session.close();
    const again = loop(name);
    const longer = [...other, reply('right', 'a3')];
    await again.follow({ messages: longer });
    expect(again.session?.id).toBe(`${name}.2`);
    expect(words(again)).toEqual(['begin', `begun ${name}`, 'that way', 'right']);
    await again.close();
  });

  test('continues after losing its session to a call id of another chat: the next context is complete', async () => {
    const proxy = await LateAnswers.open(root);
    const { address } = proxy;
    const clients = await Promise.all(
      ['one', 'other'].map((data) => openClient(root, { address, dataDir: join(root, data), track: false })),
    );
    const loops = clients.map((from, i) => loop(`${name}-${i}`, undefined, from));
    const begun = loops.map((_, i) => [user(`begin ${name} ${i}`, `u1-${i}`)]);
    await Promise.all(loops.map((one, i) => one.context({ messages: begun[i] ?? [], system: 'be good' })));
    await Promise.all(clients.map((from) => from.backpressure(0, 240_000)));
    const histories = begun.map((messages, i) => [...messages, ...shell(1, `output of ${i}`)]);
    for (const messages of histories) messages.push(reply('and then', `a-${messages.length}`));
    // Both take one id before the database has it from either.
    const release = proxy.holdWrites();
    await Promise.all(loops.map((one, i) => one.context({ messages: histories[i] ?? [] })));
    release();
    await Promise.all(clients.map((from) => from.backpressure(0, 240_000)));
    for (const [i, one] of loops.entries()) {
      const messages = [...(histories[i] ?? []), user('go on', `u2-${i}`), ...shell(2 + i, `more of ${i}`)];
      const context = await one.context({ messages });
      expect([context?.session, context?.pool]).toEqual([`${name}-${i}`, 2]);
      expect(words(one)).toEqual([`begin ${name} ${i}`, 'and then', 'go on']);
      await one.close();
    }
    expect(await Promise.all(clients.map((from) => from.close()))).toEqual([{ unflushed: 0 }, { unflushed: 0 }]);
    await proxy.close();
  });

  test('shares the chat of a fork that names its parent, and of one without, with other message ids', async () => {
    const parent = loop(name);
    await parent.follow({ messages: first });
    await parent.close();
    for (const [id, history, named, where] of [
      [`${name}-named`, first, name, 'elsewhere'],
      [`${name}-found`, renamed(first), undefined, 'somewhere else'],
    ] as const) {
      const fork = loop(id, named);
      const context = await fork.context({ messages: [...history, user(where, `u9-${id}`)] });
      expect(context?.session).toBe(id);
      expect(words(fork)).toEqual(['begin', `begun ${name}`, where]);
      expect(events(fork)).toEqual([expect.objectContaining({ kind: 'forked', detail: name })]);
      expect(fork.session?.state.sets.index).toEqual(
        expect.arrayContaining(['call_1', 'call_2'].map((call) => expect.stringContaining(call))),
      );
      await fork.close();
      const again = loop(id);
      await again.follow({ messages: [...history, user(where, `u9-${id}`), reply('there', 'a9')] });
      expect(words(again)).toEqual(['begin', `begun ${name}`, where, 'there']);
      await again.close();
    }
  });

  test('gives a fork of a compacted session its whole chat', async () => {
    const parent = loop(name);
    await parent.follow({ messages: [...first, user('more', 'u2'), reply('much', 'a2')] });
    const compacted = [{ role: 'compactionSummary', content: 'they began', id: 's1' }, reply('much', 'a2')];
    await parent.follow({ messages: [...compacted, user('and then?', 'u3'), reply('this', 'a3')], compacted: true });
    await parent.close();
    const fork = loop(`${name}-fork`, name);
    await fork.context({
      messages: [...compacted, user('and then?', 'u3'), reply('this', 'a3'), user('where?', 'u4')],
      compacted: true,
    });
    expect(words(fork)).toEqual([
      'begin',
      `begun ${name}`,
      'more',
      'much',
      'they began',
      'and then?',
      'this',
      'where?',
    ]);
    await fork.close();
  });

  test('records a compaction as an event without loss or branch, and the chat continues', async () => {
    const session = loop(name);
    await session.follow({ messages: [...first, user('more', 'u2'), reply('much', 'a2')] });
    const compacted = [
      { role: 'compactionSummary', content: 'they began', id: 's1' },
      reply('much', 'a2'),
      user('and then?', 'u3'),
    ];
    const context = await session.context({ messages: compacted, compacted: true });
    expect(context).toMatchObject({ session: name, from: 2 });
    expect(context?.before.at(-1)?.parts[0]?.text).toContain('user: begin');
    expect(words(session)).toEqual(['begin', `begun ${name}`, 'more', 'much', 'they began', 'and then?']);
    expect(events(session).map(({ kind }) => kind)).toEqual(['compacted']);
    await session.follow({ messages: [...compacted, reply('this', 'a3')], compacted: true });
    expect(events(session)).toHaveLength(1);
    await session.close();
  });

  test('delivers, records and rebuilds another layout', async () => {
    const session = loop(name, undefined, client, { layout: 'chat-first' });
    await session.follow({ messages: first });
    const context = await session.context({ messages: [...first, user('and now?', 'u2'), ...shell(3)] });
    expect(context?.before.map(({ section }) => section)).toEqual(['chat']);
    expect(context?.after.map(({ section }) => section)).toEqual(['pool', 'active']);
    const record = await session.handed({ sha256: 'c'.repeat(64) as never, chars: 1, messages: 1 });
    expect(record?.layout).toBe('chat-first');
    await client.backpressure(0);
    expect(await verifySession(await client.delivered(), name)).toMatchObject({
      ok: true,
      contexts: { total: 1, equal: 1, unequal: [] },
    });
    await session.close();
  });

  test('makes no context without a user message', async () => {
    const session = loop(name);
    expect(await session.context({ messages: [reply('by myself', 'a1')] })).toBeUndefined();
    await session.close();
  });

  test('shows a read file in its current state', async () => {
    await writeFile(join(root, 'a.txt'), 'old text\n');
    const session = loop(name);
    const read: readonly ReportedMessage[] = [
      { role: 'assistant', content: '', tool_calls: [{ id: 'read_1', name: 'read', arguments: { path: 'a.txt' } }] },
      { role: 'toolResult', tool_call_id: 'read_1', content: 'old text\n' },
    ];
    const context = await session.context({ messages: [user('read', 'u1'), ...read] });
    expect(context?.after.flatMap(({ parts }) => parts.map(({ text }) => text))).toEqual([
      expect.stringMatching(/^ACTIVE_CONTENT id=[0-9a-f]{64}\ntoolcall_ref id=read_1\S* tool=read status=ok$/),
    ]);
    await session.close();
  });
});
