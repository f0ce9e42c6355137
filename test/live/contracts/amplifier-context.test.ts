import { randomUUID } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { pairFindings } from '../../support/pair-check.js';
import { servedFolders } from '../../support/served-folders.js';

/**
 * Our own wording of the duties of Amplifier's context managers. Each test checks a rule of
 * contract 2.1 or 1.0, or an invariant of compaction.
 */
const { api } = servedFolders();

interface Message {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'function' | 'tool';
  readonly content?: string | { type: string; [member: string]: unknown }[] | null;
  readonly tool_call_id?: string;
  readonly tool_calls?: { id: string; [member: string]: unknown }[];
  readonly name?: string;
  readonly metadata?: { [member: string]: unknown };
}

const named = (messages: readonly Message[]) => messages.map((message) => ({ id: randomUUID(), message }));
const called = (...ids: readonly string[]) =>
  ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{"at":1}' } }));
const result = (id: string, content: string): Message => ({ role: 'tool', tool_call_id: id, name: 'look', content });
const said = ({ metadata: _metadata, ...message }: Message): Message => message;

async function opened(): Promise<string> {
  return (await api.call('openSession', undefined, {})).id;
}
const add = (id: string, ...messages: readonly Message[]) =>
  api.call('addAmplifierMessages', id, { messages: named(messages) });
const list = async (id: string): Promise<readonly Message[]> =>
  (await api.call('getAmplifierMessages', id)).messages as readonly Message[];
const view = (id: string, wish: { readonly budget: number; [knob: string]: unknown }) =>
  api.call('viewAmplifierMessages', id, wish);

const findings = (messages: readonly Message[]) =>
  pairFindings(
    messages.map((message) => {
      if (message.role === 'tool') return { kind: 'result' as const, call: message.tool_call_id ?? '' };
      if (message.role === 'assistant')
        return { kind: 'assistant' as const, calls: (message.tool_calls ?? []).map(({ id }) => id) };
      return { kind: message.role === 'user' ? ('user' as const) : ('other' as const) };
    }),
    { running: true },
  );

const words = (seed: string, count: number): string => Array.from({ length: count }, (_, i) => `${seed}${i}`).join(' ');

/** Turns with one call each. Each result takes some hundred tokens. */
const turns = (from: number, to: number): readonly Message[] =>
  Array.from({ length: to - from }, (_, i) => from + i).flatMap((n): readonly Message[] => [
    { role: 'user', content: `question ${n}` },
    { role: 'assistant', content: null, tool_calls: called(`turn_${n}`) },
    result(`turn_${n}`, words(`r${n}_`, 120)),
    { role: 'assistant', content: `answer ${n}` },
  ]);

describe('contract 2.1', () => {
  test('returns added messages unchanged and in order, also after the server forgot the session', async () => {
    const id = await opened();
    expect(await list(id)).toEqual([]);
    const thinking = { type: 'thinking', thinking: 'hm', signature: 'c2ln' };
    const given: readonly Message[] = [
      { role: 'system', content: 'be brief' },
      { role: 'system', content: 'and kind' },
      { role: 'user', content: 'look', metadata: { source: 'human' } },
      {
        role: 'assistant',
        content: [thinking, { type: 'text', text: 'I look.' }],
        tool_calls: [{ id: 'own', tool: 'look', arguments: { at: 1 } }],
      },
    ];
    expect(await add(id, ...given)).toEqual({ added: 4, known: 0 });
    await api.call('closeSession', id);
    await api.call('openSession', undefined, { id, must_exist: true });
    // A resuming program may begin with its prompt again; the call was announced to the previous
    // server.
    expect(await add(id, { role: 'system', content: 'be brief' })).toEqual({ added: 0, known: 1 });
    await add(id, result('own', 'a\ud800b'), { role: 'assistant', content: 'Seen.' });
    const messages = await list(id);
    expect(messages.map(said)).toEqual([
      ...given.map(said),
      result('own', 'a\ufffdb'),
      { role: 'assistant', content: 'Seen.' },
    ]);
    expect(messages[2]?.metadata).toEqual({ source: 'human', timestamp: expect.stringMatching(/^\d{4}-.*Z$/) });
    expect((await view(id, { budget: 10_000 })).messages.map((m) => said(m as Message))).toEqual(messages.map(said));
  });

  test('accepts a repeated message once', async () => {
    const id = await opened();
    const messages = named([
      { role: 'user', content: 'once' },
      { role: 'assistant', content: '', tool_calls: called('o1') },
      result('o1', 'r'),
    ]);
    expect(await api.call('addAmplifierMessages', id, { messages })).toEqual({ added: 3, known: 0 });
    expect(await api.call('addAmplifierMessages', id, { messages })).toEqual({ added: 0, known: 3 });
    expect(await list(id)).toHaveLength(3);
  });

  test('accepts a whole list again if its answer was lost', async () => {
    const id = await opened();
    const messages = named([
      { role: 'user', content: 'first', metadata: { place: 1 } },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm' },
          { type: 'text', text: 'second' },
        ],
      },
      { role: 'user', content: 'third', metadata: { place: 3 } },
    ]);
    // The state after a server ends between the steps of a list and its records.
    const session = await api.send(`/v1/sessions/${id}/messages`, {
      body: {
        messages: messages.slice(0, 2).map(({ id: name, message }) => ({
          ...message,
          id: name,
          content: message.role === 'user' ? message.content : 'second',
        })),
      },
    });
    expect(session.status).toBe(200);
    expect(await api.call('setAmplifierMessages', id, { messages })).toEqual({ outcome: 'imported' });
    const taken = await list(id);
    expect(taken.map(({ metadata }) => metadata?.place)).toEqual([1, undefined, 3]);
    expect(taken[1]?.content).toEqual(messages[1]?.message.content);
  });

  test('clears everything and starts a new list; the session keeps its turns', async () => {
    const id = await opened();
    await add(id, { role: 'system', content: 'first' }, { role: 'user', content: 'before' });
    expect(await api.call('clearAmplifierMessages', id)).toEqual({ cleared: 2 });
    expect(await list(id)).toEqual([]);
    expect((await view(id, { budget: 100 })).messages).toEqual([]);
    await add(id, { role: 'system', content: 'second' }, { role: 'user', content: 'after' });
    expect((await list(id)).map(said)).toEqual([
      { role: 'system', content: 'second' },
      { role: 'user', content: 'after' },
    ]);
    expect((await api.call('getSession', id)).turn).toBe(2);
  });

  test('imports, ignores, extends, refuses or replaces a whole list', async () => {
    const id = await opened();
    const set = (messages: readonly Message[], more = {}) =>
      api.call('setAmplifierMessages', id, { messages: named(messages), ...more });
    const base = turns(0, 2);
    expect(await set(base)).toEqual({ outcome: 'imported' });
    expect(await set(base.slice(4))).toEqual({ outcome: 'ignored' });
    expect(await set([...base, { role: 'user', content: 'more' }])).toEqual({ outcome: 'extended' });
    const before = await list(id);
    expect(before.map(said)).toEqual([...base, { role: 'user', content: 'more' }]);
    const other = { messages: named([{ role: 'user', content: 'other' }]) };
    const path = `/v1/sessions/${id}/amplifier/messages`;
    expect(await api.refused(path, { method: 'PUT', body: other })).toMatchObject({
      status: 409,
      code: 'other-history',
    });
    expect(await list(id)).toEqual(before);
    expect(await set([{ role: 'user', content: 'other' }], { replace: true })).toEqual({ outcome: 'replaced' });
    expect((await list(id)).map(said)).toEqual([{ role: 'user', content: 'other' }]);
  });

  test('keeps results and earlier ids of a list that replaces another or follows a clear', async () => {
    const id = await opened();
    const base = named(turns(0, 1));
    const set = (messages: typeof base, more = {}) => api.call('setAmplifierMessages', id, { messages, ...more });
    await set(base);
    const edited = [...named([{ role: 'user', content: 'asked in another way' }]), ...base.slice(1)];
    expect(await set(edited, { replace: true })).toEqual({ outcome: 'replaced' });
    expect((await list(id)).map(said)).toEqual(edited.map(({ message }) => message));
    expect((await view(id, { budget: 5_000 })).messages).toEqual(await list(id));
    await api.call('clearAmplifierMessages', id);
    expect(await api.call('addAmplifierMessages', id, { messages: base })).toEqual({ added: 4, known: 0 });
    expect(await api.call('addAmplifierMessages', id, { messages: base })).toEqual({ added: 0, known: 4 });
    await api.call('closeSession', id);
    await api.call('openSession', undefined, { id, must_exist: true });
    expect(await set(base)).toEqual({ outcome: 'imported' });
    expect((await list(id)).map(said)).toEqual(base.map(({ message }) => message));
    expect((await view(id, { budget: 5_000 })).messages).toEqual(await list(id));
  });

  test('does not treat a list with one known id as already sent', async () => {
    const id = await opened();
    const user = (content: string): Message => ({ role: 'user', content });
    const [a, b, c, x] = named([user('a'), user('b'), user('c'), user('x')]);
    await api.call('setAmplifierMessages', id, { messages: [a, b, c] });
    const path = `/v1/sessions/${id}/amplifier/messages`;
    const other = { messages: [a, x] };
    expect(await api.refused(path, { method: 'PUT', body: other })).toMatchObject({
      status: 409,
      code: 'other-history',
    });
    expect((await list(id)).map(({ content }) => content)).toEqual(['a', 'b', 'c']);
    expect(await api.call('setAmplifierMessages', id, { ...other, replace: true })).toEqual({ outcome: 'replaced' });
    expect((await list(id)).map(({ content }) => content)).toEqual(['a', 'x']);
  });

  test('refuses a non-message by its place and changes nothing', async () => {
    const id = await opened();
    const path = `/v1/sessions/${id}/amplifier/messages`;
    const bad = { messages: [...named([{ role: 'user', content: 'good' }]), { id: 'x', message: {} }] };
    const { status, problem } = await api.refused(path, { body: bad });
    expect([status, problem.errors?.map(({ pointer }) => pointer)]).toEqual([400, ['/messages/1/message/role']]);
    expect(await list(id)).toEqual([]);
    expect(await api.refused(`/v1/sessions/${id}/amplifier/view`, { body: { budget: 0 } })).toMatchObject({
      status: 400,
    });
    await add(id, { role: 'system', content: words('s', 500) });
    expect(await api.refused(`/v1/sessions/${id}/amplifier/view`, { body: { budget: 50 } })).toMatchObject({
      status: 409,
      code: 'budget-too-small',
    });
  });
});

describe('unstorable content', () => {
  const deep = (levels: number): unknown => JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
  const block = (members: object): Message => ({ role: 'assistant', content: [{ type: 'tool_call', ...members }] });
  const resultBlock = (id: string): Message => ({
    role: 'user',
    content: [{ type: 'tool_result', tool_call_id: id, output: 'r' }],
  });

  test('is refused by its place before anything is taken, and later messages are taken', async () => {
    const id = await opened();
    const path = `/v1/sessions/${id}/amplifier/messages`;
    const good: Message = { role: 'user', content: 'good' };
    const bad: readonly (readonly [Message, string])[] = [
      [{ role: 'user', content: 'x', metadata: { deep: deep(250) } }, ''],
      [{ role: 'user', content: 'x', metadata: { deep: deep(480) } }, ''],
      [block({ id: '', name: 'look' }), '/content/0/id'],
      [block({ id: 'c', name: 'n'.repeat(401) }), '/content/0/name'],
      [resultBlock(''), '/content/0/tool_call_id'],
    ];
    for (const [message, pointer] of bad) {
      const { status, problem } = await api.refused(path, { body: { messages: named([good, message]) } });
      expect([status, problem.errors?.map((error) => error.pointer)]).toEqual([400, [`/messages/1/message${pointer}`]]);
    }
    const infinite = JSON.stringify({ messages: named([{ ...good, metadata: { large: 0.5 } }]) }).replace(
      '0.5',
      '1e999',
    );
    expect(await api.refused(path, { raw: infinite })).toMatchObject({ status: 400 });
    expect(await list(id)).toEqual([]);
    expect(await add(id, { ...good, metadata: { deep: deep(180) } }, block({ id: 'c', name: 'look' }))).toEqual({
      added: 2,
      known: 0,
    });
    expect(await list(id)).toHaveLength(2);
  });

  test('includes more messages than a request may have; a prompt in blocks is its text', async () => {
    const id = await opened();
    const many = Array.from({ length: 10_001 }, (_, i) => ({ id: `${i}`, message: { role: 'user', content: '' } }));
    expect(await api.refused(`/v1/sessions/${id}/amplifier/messages`, { body: { messages: many } })).toMatchObject({
      status: 400,
    });
    const prompt: Message = { role: 'system', content: [{ type: 'text', text: 'be kind' }] };
    expect(await add(id, { role: 'system', content: 'be brief' }, prompt, prompt)).toEqual({ added: 2, known: 1 });
    expect((await list(id)).map(({ content }) => content)).toEqual(['be brief', 'be kind']);
  });
});

describe('oversized blocks', () => {
  const image = (seed: string, characters: number): Message => ({
    role: 'user',
    content: [
      { type: 'text', text: `look at ${seed}` },
      { type: 'image', source: { media_type: 'image/png', data: seed.repeat(characters / seed.length) } },
    ],
  });
  const thinking: Message = {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: 'hm '.repeat(30_000), signature: 'c2ln' },
      { type: 'text', text: 'So it is.' },
    ],
  };
  // Each fits into a record, but not all together.
  const many: Message = {
    role: 'user',
    content: Array.from({ length: 12 }, (_, i) => ({ type: 'image', data: `${i % 10}`.repeat(50_000) })),
    metadata: { source: 'human' },
  };

  test('come back unchanged, also from a fresh server, and the same list is recognised', async () => {
    const id = await opened();
    const given = [image('abcd', 700_000), thinking, many, { role: 'assistant', content: 'done' } as Message];
    const set = (messages: readonly Message[]) => api.call('setAmplifierMessages', id, { messages: named(messages) });
    expect(await set(given)).toEqual({ outcome: 'imported' });
    await api.call('closeSession', id);
    await api.call('openSession', undefined, { id });
    expect((await list(id)).map(({ content }) => content)).toEqual(given.map(({ content }) => content));
    expect(await set(given)).toEqual({ outcome: 'ignored' });
    expect(await set([...given, { role: 'user', content: 'more' }])).toEqual({ outcome: 'extended' });
    const shown = await view(id, { budget: 200_000 });
    expect(shown.messages.slice(0, 4).map(({ content }) => content)).toEqual(given.map(({ content }) => content));
    // Each picture counts a fixed number of tokens. Thinking counts by its words.
    expect(shown.tokens).toBeGreaterThan(13 * 1_600 + 30_000);
    const other = {
      ...image('abcd', 700_000),
      content: [
        { type: 'text', text: 'look at abcd' },
        { type: 'image', source: {} },
      ],
    };
    const path = `/v1/sessions/${id}/amplifier/messages`;
    expect(await api.refused(path, { method: 'PUT', body: { messages: named([other as Message]) } })).toMatchObject({
      code: 'other-history',
    });
    const verified = await api.send(`/v1/verify?session=${id}`, { method: 'GET' });
    expect(verified).toMatchObject({ status: 200, body: { ok: true } });
  });
});

describe('invariants of compaction', () => {
  test('changes only the view: in the limit, whole pairs, system first, first and last question; sticky', async () => {
    const id = await opened();
    await add(id, { role: 'system', content: 'be brief' }, ...turns(0, 12));
    const all = await list(id);
    const wish = { budget: 2_000, target_usage: 0.5, compact_threshold: 0.9, protected_tool_results: 2 };
    const first = await view(id, wish);
    const messages = first.messages as readonly Message[];
    expect(await list(id)).toEqual(all);
    expect(first).toMatchObject({ all: all.length, limit: 2_000, compaction: { after_tokens: first.tokens } });
    expect(first.tokens).toBeLessThanOrEqual(2_000);
    expect(findings(messages)).toEqual([]);
    expect(messages[0]).toEqual(all[0]);
    const asked = messages.filter(({ role, content }) => role === 'user' && String(content).startsWith('question'));
    expect([asked[0]?.content, asked.at(-1)?.content]).toEqual(['question 0', 'question 11']);
    const results = messages.filter(({ role }) => role === 'tool');
    expect(results.slice(-2)).toEqual(all.filter(({ role }) => role === 'tool').slice(-2));

    expect(await view(id, wish)).toEqual({ ...first, compaction: null });
    await add(id, { role: 'user', content: 'question 12' });
    const next = await view(id, wish);
    expect(next.compaction).toBeNull();
    expect(next.messages.slice(0, messages.length)).toEqual(messages);
    // A fresh server continues with the view.
    await api.call('closeSession', id);
    await api.call('openSession', undefined, { id });
    expect(await view(id, wish)).toEqual(next);
  });

  test('keeps six results of one message together in order, and equal results of two calls separate', async () => {
    const id = await opened();
    const ids = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'];
    await add(
      id,
      { role: 'user', content: 'six' },
      { role: 'assistant', content: '', tool_calls: called(...ids) },
      ...ids.toReversed().map((one) => result(one, 'same')),
      { role: 'assistant', content: 'done' },
    );
    const { messages } = await view(id, { budget: 5_000 });
    expect(findings(messages as readonly Message[])).toEqual([]);
    expect(messages.slice(2, 8).map((m) => m.tool_call_id)).toEqual(ids);
  });

  test('never drops a message with missing results', async () => {
    const id = await opened();
    await add(
      id,
      { role: 'user', content: 'start' },
      { role: 'assistant', content: '', tool_calls: called('half_1', 'half_2') },
      result('half_1', words('h', 200)),
      ...turns(20, 26),
    );
    const { messages } = await view(id, { budget: 700, target_usage: 0.5 });
    expect(messages.find((m) => m.tool_calls?.some((call) => call.id === 'half_1'))?.tool_calls).toHaveLength(2);
  });

  test('stores a large result whole and shows it without its middle, identically each time', async () => {
    const id = await opened();
    const text = words('big', 3_000);
    await add(
      id,
      { role: 'user', content: 'big' },
      { role: 'assistant', content: '', tool_calls: called('big_1') },
      result('big_1', text),
    );
    const wish = { budget: 50_000, max_tool_result_bytes: 2_000 };
    const shown = (await view(id, wish)).messages.at(-1)?.content;
    expect(String(shown).length).toBeLessThan(4_000);
    expect((await view(id, wish)).messages.at(-1)?.content).toBe(shown);
    expect((await list(id)).at(-1)?.content).toBe(text);
  });

  test('adds a call to a result without one, so that no view has the result alone', async () => {
    const id = await opened();
    await add(id, result('lost', 'r'), { role: 'assistant', content: 'so' }, { role: 'user', content: 'go on' });
    const { messages } = await view(id, { budget: 1_000 });
    expect(findings(messages as readonly Message[])).toEqual([]);
    expect(messages.map(({ role }) => role)).toEqual(['assistant', 'tool', 'assistant', 'user']);
  });
});
