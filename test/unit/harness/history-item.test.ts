import { describe, expect, test } from '@jest/globals';
import { argsOf, historyOf, tailStart } from '../../../src/harness/history-item.js';
import { messageSchema } from '../../../src/harness/message-schema.js';

const CALL = { kind: 'call', tool: 'read', args: { path: 'a.ts' }, status: 'ok', files: [] };

describe('parsing a history', () => {
  test('reads the shape with tool_calls and tool_call_id', () => {
    const { systemPrompt, items, open } = historyOf([
      { role: 'system', content: 'be good' },
      { role: 'user', content: 'look' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'read', arguments: '{"path":"a.ts"}' } },
          { id: 'c2', type: 'function', function: { name: 'ls', arguments: '{}' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'text' },
    ]);
    expect(systemPrompt).toBe('be good');
    expect(items).toEqual([
      { kind: 'message', index: 1, role: 'user', text: 'look' },
      { kind: 'message', index: 2, role: 'assistant', text: '' },
      { ...CALL, id: 'c1', index: 3, content: 'text', from: { index: 2 } },
    ]);
    expect([...open]).toEqual([['c2', { tool: 'ls', args: {}, from: { index: 2 } }]]);
  });

  test('reads the shape with blocks: results are calls, the user’s text beside them is a message', () => {
    const { items } = historyOf(
      [
        {
          role: 'assistant',
          content: [
            { type: 'text', text: 'I look' },
            { type: 'tool_use', id: 'c1', name: 'read', input: { path: 'a.ts' } },
          ],
        },
        {
          role: 'user',
          content: [
            { type: 'tool_result', tool_use_id: 'c1', content: [{ type: 'text', text: 'gone' }], is_error: true },
            { type: 'text', text: 'and?' },
          ],
        },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }], name: 'later' },
      ].slice(0, 2),
    );
    expect(items).toEqual([
      { kind: 'message', index: 0, role: 'assistant', text: 'I look' },
      { ...CALL, id: 'c1', index: 1, content: 'gone', status: 'fail', from: { index: 0 } },
      { kind: 'message', index: 1, role: 'user', text: 'and?' },
    ]);
  });

  test('makes no message of a message with results only', () => {
    const known = new Map([['c1', { tool: 'read', args: { path: 'a.ts' } }]]);
    const { items } = historyOf(
      [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c1', content: 'x' }] }],
      { known },
    );
    expect(items.map(({ kind }) => kind)).toEqual(['call']);
  });

  test('assigns results to calls without ids in order', () => {
    const { items } = historyOf([
      { role: 'assistant', tool_calls: [{ name: 'read', arguments: { path: 'a' } }, { name: 'ls' }] },
      { role: 'tool', content: 'one' },
      { role: 'tool', content: 'two' },
    ]);
    expect(items.flatMap((item) => (item.kind === 'call' ? [[item.tool, item.content]] : []))).toEqual([
      ['read', 'one'],
      ['ls', 'two'],
    ]);
  });

  test('treats a repeated id after its result as a new call', () => {
    const ask = (path: string) => ({ role: 'assistant', tool_calls: [{ id: 'c', name: 'read', arguments: { path } }] });
    const answer = { role: 'tool', tool_call_id: 'c', content: 'x' };
    const { items } = historyOf([ask('a'), answer, ask('b'), answer]);
    expect(items.flatMap((item) => (item.kind === 'call' ? [item.args] : []))).toEqual([{ path: 'a' }, { path: 'b' }]);
  });

  test('refuses an unannounced result unless it names its tool', () => {
    expect(() => historyOf([{ role: 'tool', tool_call_id: 'zz', content: '' }])).toThrow(
      /messages\[0\] is the result of the call "zz"/,
    );
    expect(historyOf([{ role: 'tool', tool_call_id: 'zz', name: 'ls', content: '' }]).items[0]).toMatchObject({
      tool: 'ls',
      args: {},
    });
  });

  test('keeps a later system message as a message, also at the beginning if no prompt is expected', () => {
    expect(
      historyOf([
        { role: 'user', content: 'a' },
        { role: 'system', content: 'b' },
      ]).items,
    ).toHaveLength(2);
    expect(historyOf([{ role: 'system', content: 'b' }], { prompt: false })).toMatchObject({
      systemPrompt: undefined,
      items: [{ text: 'b' }],
    });
  });

  test('keeps token counts under known names and ignores fields of other wires', () => {
    const itemOf = (usage: unknown) =>
      historyOf([messageSchema.parse({ role: 'assistant', content: 'said', usage })]).items[0];
    const bare = { kind: 'message', index: 0, role: 'assistant', text: 'said' };
    expect(itemOf({ input: 3, cache_read: 70 })).toEqual({ ...bare, usage: { input: 3, cacheRead: 70 } });
    const missed = { input: 3, cache_miss: { reason: 'tools_changed', tokens: 9 }, thinking_dropped: 2 };
    expect(itemOf(missed)).toEqual({
      ...bare,
      usage: { input: 3, cacheMiss: { reason: 'tools_changed', tokens: 9 }, thinkingDropped: 2 },
    });
    expect(itemOf({ cache_miss: null })).toEqual(bare);
    expect(() => itemOf({ cache_miss: { type: 'tools_changed' } })).toThrow(/reason/);
    expect(itemOf({ input: 3, total: 99 })).toEqual({ ...bare, usage: { input: 3 } });
    for (const other of [{ input_tokens: 5, output_tokens: 2 }, {}, null]) expect(itemOf(other)).toEqual(bare);
    expect(() => itemOf({ input: -1 })).toThrow(/usage/);
  });

  test.each<[string, unknown, string]>([
    ['words in text', { role: 'user', text: 'lost?' }, 'text is not read; write it as content'],
    [
      'words beside an empty content',
      { role: 'user', content: '', text: 'lost?' },
      'text is not read; write it as content',
    ],
    [
      'words in parts',
      { role: 'user', parts: [{ type: 'text', text: 'lost?' }] },
      'parts is not read; write it as content',
    ],
    [
      'a result in output',
      { role: 'tool', tool_call_id: 'c', output: 'lost?' },
      'output is not read; write it as content',
    ],
    ['nothing at all', { role: 'user' }, 'content is missing: a message is {role, content}'],
    [
      'a call of another time',
      { role: 'assistant', content: null, function_call: { name: 'ls' } },
      'function_call is not read',
    ],
    [
      'calls of another wire',
      { role: 'assistant', content: 'on it', toolCalls: [{ toolName: 'ls' }] },
      'write it as tool_calls',
    ],
    [
      'a call without a name',
      { role: 'assistant', content: 'on it', tool_calls: [{ id: 'c', toolName: 'ls' }] },
      'a call without a name',
    ],
    [
      'a block of a call without one',
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c' }] },
      'a call without a name',
    ],
  ])('refuses a message that would lose content: %s', (_, message, reason) => {
    expect(messageSchema.safeParse(message).error?.issues.map((issue) => issue.message)).toEqual([
      expect.stringContaining(reason),
    ]);
  });

  test('keeps custom roles, empty messages and calls of every known shape', () => {
    const kept = [
      { role: 'compactionSummary', content: 'so far' },
      { role: 'assistant', content: '' },
      { role: 'user', content: 'said', text: 'said', parts: [] },
      {
        role: 'assistant',
        tool_calls: [
          { name: 'ls' },
          { function: { name: 'ls', arguments: '{}' } },
          { custom: { name: 'ls', input: 'x' } },
        ],
      },
    ];
    for (const message of kept) expect(messageSchema.safeParse(message).error).toBeUndefined();
    expect([...historyOf(kept.map((message) => messageSchema.parse(message))).items]).toHaveLength(4);
  });

  describe('the start of the running turn', () => {
    const says = (content: string) => ({ role: 'user', content });
    const answers = (content: string) => ({ role: 'assistant', content });
    const asks = (...ids: readonly string[]) => ({
      role: 'assistant',
      content: null,
      tool_calls: ids.map((id) => ({ id, name: 'ls' })),
    });
    const result = (id: string) => ({ role: 'tool', tool_call_id: id, content: 'x' });
    const STOPPED = [says('look'), asks('c1', 'c2'), result('c1'), says('no, otherwise')];

    test.each<[string, number | undefined, readonly object[]]>([
      ['at the last message of the user', 3, [says('look'), asks('c1'), result('c1'), says('and now?')]],
      ['before a call whose result may still come', 0, STOPPED],
      [
        'there also once the model spoke behind what was said meanwhile',
        0,
        [...STOPPED, answers('so'), asks('c3'), result('c3')],
      ],
      [
        'at the next message behind a call that was stopped',
        6,
        [...STOPPED, asks('c3'), result('c3'), says('and now?')],
      ],
      ['before a call whose result comes late', 0, [...STOPPED, answers('so'), says('and now?'), result('c2')]],
      [
        'at a message behind such a result',
        7,
        [...STOPPED, answers('so'), says('and now?'), result('c2'), says('more')],
      ],
      [
        'at a message between two calls that have one id',
        5,
        [...STOPPED, answers('so'), says('and now?'), asks('c2'), result('c2')],
      ],
      [
        'before calls without ids',
        0,
        [
          says('look'),
          { role: 'assistant', tool_calls: [{ name: 'ls' }] },
          says('wait'),
          { role: 'tool', content: 'x' },
        ],
      ],
      [
        'before a call whose result a message of the user brings',
        0,
        [
          says('look'),
          asks('c1', 'c2'),
          {
            role: 'user',
            content: [
              { type: 'tool_result', tool_use_id: 'c1', content: 'x' },
              { type: 'text', text: 'and?' },
            ],
          },
        ],
      ],
      ['nowhere without a message of the user', undefined, [answers('so')]],
    ])('%s', (_, from, messages) => {
      expect(tailStart(messages.map((message) => messageSchema.parse(message)))).toBe(from);
    });
  });

  test('turns any arguments of the model into a map', () => {
    expect([argsOf('{"a":1}'), argsOf({ a: 1 }), argsOf(null), argsOf(''), argsOf('{oops'), argsOf('[1]')]).toEqual([
      { a: 1 },
      { a: 1 },
      {},
      {},
      { raw: '{oops' },
      { raw: '[1]' },
    ]);
  });
});
