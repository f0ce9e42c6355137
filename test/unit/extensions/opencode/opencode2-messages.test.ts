import { describe, expect, test } from '@jest/globals';
import type { Opencode2Message, StoredMessage } from '../../../../src/extensions/opencode/opencode2-api.js';
import {
  answeredList,
  nothingSeen,
  opencode2List,
  withoutThoughts,
} from '../../../../src/extensions/opencode/opencode2-messages.js';
import { composed } from '../../../../src/extensions/sidecar/composed-list.js';
import { sessionId } from '../../../../src/objects/ids.js';

const text = (value: string) => ({ type: 'text', text: value });
const user = (id: string, value: string): Opencode2Message => ({ id, role: 'user', content: [text(value)] });
const result = (id: string, value: { readonly type: string; readonly value: unknown }): Opencode2Message => ({
  role: 'tool',
  content: [{ type: 'tool-result', id, name: 'read', result: value }],
});
const called = (id: string, ...calls: readonly string[]): Opencode2Message => ({
  id,
  role: 'assistant',
  content: [
    { type: 'reasoning', text: 'hidden', providerMetadata: { anthropic: { signature: 's' } } },
    text('I look'),
    ...calls.map((call) => ({ type: 'tool-call', id: call, name: 'read', input: { path: 'a.ts' } })),
  ],
});
const listed = (messages: readonly Opencode2Message[]) => opencode2List('s', messages, { system: undefined });

describe('the list of OpenCode 2', () => {
  test('is reported without thoughts and calls of the provider, with the results of our tools', () => {
    const messages: readonly Opencode2Message[] = [
      user('msg_1', 'look'),
      {
        ...called('msg_2', 'call_1', 'call_2'),
        content: [
          ...called('msg_2', 'call_1', 'call_2').content,
          { type: 'tool-call', id: 'web', name: 'search', input: {}, providerExecuted: true },
          {
            type: 'tool-result',
            id: 'web',
            name: 'search',
            providerExecuted: true,
            result: { type: 'json', value: 1 },
          },
        ],
      },
      result('call_1', { type: 'text', value: 'one' }),
      result('call_2', { type: 'error', value: { error: { type: 'unknown', message: 'no such file' } } }),
      { role: 'system', content: [text('The folder has changed.')] },
    ];
    expect(listed(messages).list.messages).toEqual([
      { role: 'user', content: 'look', id: 'msg_1' },
      {
        role: 'assistant',
        content: 'I look',
        id: 'msg_2',
        tool_calls: ['call_1', 'call_2'].map((id) => ({ id, name: 'read', arguments: { path: 'a.ts' } })),
      },
      { role: 'tool', tool_call_id: 'call_1', name: 'read', content: 'one', is_error: false },
      { role: 'tool', tool_call_id: 'call_2', name: 'read', content: 'no such file', is_error: true },
      { role: 'instructions', content: 'The folder has changed.' },
    ]);
  });

  test.each([
    ['text', 'plain', 'plain'],
    ['json', { found: 2 }, '{"found":2}'],
    ['content', [text('one'), text('two')], 'one\ntwo'],
    ['content', [{ type: 'file', mime: 'image/png', uri: 'data:image/png;base64,AAAA' }], '[file image/png 3 bytes]'],
    ['error', 'stopped', 'stopped'],
  ])('has the text of a result of the type %s', (type, value, told) => {
    expect(listed([result('c', { type, value })]).list.messages[0]).toMatchObject({ content: told });
  });

  test('has the token counts of an answer once OpenCode reports them', () => {
    const seen = nothingSeen();
    const counts = new Map<string, { readonly input: number; readonly output: number }>();
    const list = () =>
      opencode2List('s', [called('msg_2')], { system: undefined, seen, usageOf: (id) => counts.get(id) }).list.messages;
    expect(list()[0]).not.toHaveProperty('usage');
    counts.set('msg_2', { input: 3, output: 5 });
    expect(list()[0]).toMatchObject({ usage: { input: 3, output: 5 } });
  });

  test('marks a summary of the history as a compaction', () => {
    const summary = user('msg_9', '<conversation-checkpoint>\n<summary>\nwe looked\n</summary>');
    const { list } = listed([summary, user('msg_10', 'go on')]);
    expect(list.compacted).toBe(true);
    expect(list.messages.map(({ role }) => role)).toEqual(['compaction', 'user']);
    expect(listed([user('msg_1', 'look')]).list).not.toHaveProperty('compacted');
  });

  test('replaces only the text of a collapsed result; all else stays', () => {
    const messages = [
      user('msg_1', 'look'),
      called('msg_2', 'call_1'),
      result('call_1', { type: 'content', value: [text('long')] }),
      result('call_2', { type: 'error', value: 'bad' }),
    ];
    const out = composed(listed(messages), {
      session: sessionId('s'),
      from: 0,
      before: [{ section: 'pool', role: 'user', parts: [{ text: 'the pool' }] }],
      inserts: [],
      after: [],
      references: [
        { index: 2, text: 'line 2' },
        { index: 3, text: 'line 3' },
      ],
      pool: 1,
      active: 0,
    });
    expect(out[0]).toEqual({ id: 'msg_palimpsest_pool', role: 'user', content: [text('the pool')] });
    expect(out.slice(1, 3)).toEqual(messages.slice(0, 2));
    expect(out[1]).toBe(messages[0]);
    expect(out.slice(3)).toEqual([
      result('call_1', { type: 'text', value: 'line 2' }),
      result('call_2', { type: 'error', value: 'line 3' }),
    ]);
  });

  test('loses thoughts that the provider binds to another beginning, and no other reasoning', () => {
    expect(withoutThoughts(called('msg_2')).content).toEqual([text('I look')]);
    const open = { ...called('msg_2'), content: [{ type: 'reasoning', text: 'r', providerMetadata: { openai: {} } }] };
    expect(withoutThoughts(open)).toBe(open);
  });
});

describe('answers after the last model call of OpenCode 2', () => {
  const own = [user('msg_1', 'look')];
  const answer: StoredMessage = {
    id: 'msg_2',
    type: 'assistant',
    content: [
      { type: 'reasoning', text: 'hidden' },
      { type: 'text', text: 'I look' },
      {
        type: 'tool',
        id: 'call_1',
        name: 'read',
        state: { status: 'completed', input: { path: 'a.ts' }, content: [text('one')] },
      },
      { type: 'tool', id: 'call_2', name: 'read', state: { status: 'running', input: {} } },
    ],
  };
  const stored = (...more: readonly StoredMessage[]): readonly StoredMessage[] => [
    { id: 'msg_1', type: 'user' },
    { id: 'x', type: 'model-switched' },
    ...more,
  ];

  test('come from the stored session, with their calls and results', () => {
    const list = answeredList(own, stored(answer, { id: 'i', type: 'idle' }));
    expect(listed(list ?? []).list.messages).toMatchObject([
      { role: 'user', id: 'msg_1' },
      { role: 'assistant', id: 'msg_2', content: 'I look', tool_calls: [{ id: 'call_1' }, { id: 'call_2' }] },
      { role: 'tool', tool_call_id: 'call_1', content: 'one', is_error: false },
    ]);
  });

  test('end where the user speaks again, and are none if the session went another way', () => {
    const again: StoredMessage = { id: 'msg_4', type: 'assistant', content: [{ type: 'text', text: 'later' }] };
    const list = answeredList(own, stored(answer, { id: 'msg_3', type: 'user' }, again));
    expect(list?.map(({ id }) => id)).toEqual(['msg_1', 'msg_2', undefined]);
    expect(answeredList(own, stored())).toBeUndefined();
    expect(answeredList(own, [answer])).toBeUndefined();
  });
});
