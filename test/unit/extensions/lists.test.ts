import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { LoopContext } from '../../../src/extensions/loop/loop-context.js';
import type { OpencodeMessage, OpencodePart } from '../../../src/extensions/opencode/opencode1-api.js';
import { opencodeList } from '../../../src/extensions/opencode/opencode1-messages.js';
import type { PiMessage } from '../../../src/extensions/pi/pi-api.js';
import { sessionOfFile } from '../../../src/extensions/pi/pi-extension.js';
import { piList } from '../../../src/extensions/pi/pi-messages.js';
import { composed, HandedLists, OwnLists } from '../../../src/extensions/sidecar/composed-list.js';
import { tailStart } from '../../../src/harness/history-item.js';
import { canonicalJson } from '../../../src/objects/canonical-json.js';
import { hashText } from '../../../src/objects/hashes.js';
import { sessionId } from '../../../src/objects/ids.js';

const part = (section: 'pool' | 'chat' | 'active', text: string) => ({ section, role: 'user', parts: [{ text }] });
const context = (from: number, references: LoopContext['references']): LoopContext => ({
  session: sessionId('s'),
  from,
  before: [part('pool', 'the pool'), part('chat', 'the chat')],
  inserts: [],
  after: [part('active', 'what is active')],
  references,
  pool: 1,
  active: 1,
});

/** A turn: the user's message, then answered calls with thoughts that must stay unchanged. */
const turns = fc.array(fc.array(fc.nat(3), { maxLength: 4 }), { minLength: 1, maxLength: 4 });

const piMessages = (shape: readonly (readonly number[])[]): readonly PiMessage[] =>
  shape.flatMap((steps, t) => [
    { role: 'user', content: [{ type: 'text', text: `request ${t}` }], timestamp: t * 1_000 },
    ...steps.flatMap((calls, s): PiMessage[] => {
      const ids = Array.from({ length: calls }, (_, i) => `call_${t}_${s}_${i}`);
      return [
        {
          role: 'assistant',
          content: [
            { type: 'thinking', thinking: 'hidden', thinkingSignature: `signature ${t} ${s}` },
            { type: 'text', text: `step ${s}` },
            ...ids.map((id) => ({
              type: 'toolCall',
              id,
              name: 'bash',
              arguments: { command: 'x' },
              thoughtSignature: 'kept',
            })),
          ],
          timestamp: t * 1_000 + s + 1,
          responseId: 'opaque',
        },
        ...ids.map((toolCallId) => ({
          role: 'toolResult',
          toolCallId,
          toolName: 'bash',
          content: [{ type: 'text', text: `output of ${toolCallId}` }],
          isError: false,
          details: { unknown: true },
        })),
      ];
    }),
  ]);

describe('the list of pi', () => {
  test('keeps the running turn as the harness’s own objects, except collapsed results; pairs stay paired', () => {
    fc.assert(
      fc.property(turns, fc.nat(5), (shape, every) => {
        const messages = piMessages(shape);
        const own = piList('s', messages, {});
        const from = tailStart(own.list.messages) ?? -1;
        expect(messages[own.places[from] ?? -1]).toMatchObject({ content: [{ text: `request ${shape.length - 1}` }] });
        const results = own.list.messages.flatMap(({ role }, index) =>
          role === 'toolResult' && index >= from ? [index] : [],
        );
        const lines = results
          .filter((_, i) => i % (every + 1) === 0)
          .map((index) => ({ index, text: `line ${index}` }));
        const list = composed(own, context(from, lines));
        const tail = list.slice(2, -1);
        const before = messages.slice(own.places[from]);
        expect(tail).toHaveLength(before.length);
        const replaced = new Map(lines.map(({ index, text }) => [own.places[index], text]));
        for (const [i, message] of tail.entries()) {
          const place = (own.places[from] ?? 0) + i;
          const line = replaced.get(place);
          if (line === undefined) expect(message).toBe(messages[place]);
          else expect(message).toEqual({ ...messages[place], content: [{ type: 'text', text: line }] });
        }
        expect(list.at(0)).toMatchObject({ role: 'user', content: [{ text: 'the pool' }] });
        expect(list.at(-1)).toMatchObject({ role: 'user', content: [{ text: 'what is active' }] });
      }),
    );
  });

  test('reports everything said and done, but no thoughts', () => {
    const { list } = piList('s', piMessages([[1]]), { parent: 'p', system: 'be good' });
    expect(JSON.stringify(list)).not.toContain('hidden');
    expect(list).toMatchObject({ parent: 'p', system: 'be good' });
    expect(list.messages).toEqual([
      { role: 'user', content: 'request 0', id: 'user@0' },
      {
        role: 'assistant',
        content: 'step 0',
        id: 'assistant@1',
        tool_calls: [{ id: 'call_0_0_0', name: 'bash', arguments: { command: 'x' } }],
      },
      {
        role: 'toolResult',
        content: 'output of call_0_0_0',
        tool_call_id: 'call_0_0_0',
        is_error: false,
        name: 'bash',
      },
    ]);
  });

  test('keeps a turn with pending calls open when the user interjects', () => {
    const [request, asks] = piMessages([[1]]) as [PiMessage, PiMessage];
    const { list } = piList('s', [request, asks, { role: 'user', content: 'hurry', timestamp: 9 }], {});
    expect(tailStart(list.messages)).toBe(0);
  });

  test('reports compaction summaries as summaries', () => {
    const summary = { role: 'compactionSummary', summary: 'it was long', timestamp: 5 };
    const { list } = piList('s', [summary, ...piMessages([[]])], {});
    expect(list.compacted).toBe(true);
    expect(list.messages[0]).toEqual({ role: 'compactionSummary', content: 'it was long', id: 'compactionSummary@5' });
  });

  test('reads the parent of a fork from the session in its file', () => {
    const id = '01a1fe92-9c43-776a-99d8-73eb69079911';
    expect(sessionOfFile(`/x/2026-11-21T14-46-23-556Z_${id}.jsonl`)).toBe(id);
    expect(sessionOfFile('/x/other.jsonl')).toBeUndefined();
    expect(sessionOfFile(undefined)).toBeUndefined();
  });
});

const ids = { sessionID: 'ses_1', messageID: 'msg_1' };
const tool = (id: string, state: OpencodePart['state']): OpencodePart => ({
  ...ids,
  id: `prt_${id}`,
  type: 'tool',
  tool: 'bash',
  callID: id,
  ...(state === undefined ? {} : { state }),
});
const opencodeMessages: readonly OpencodeMessage[] = [
  {
    info: { id: 'msg_0', sessionID: 'ses_1', role: 'user', agent: 'build' },
    parts: [{ ...ids, id: 'prt_0', type: 'text', text: 'go' }],
  },
  {
    info: { id: 'msg_1', sessionID: 'ses_1', role: 'assistant' },
    parts: [
      { ...ids, id: 'prt_1', type: 'step-start' },
      { ...ids, id: 'prt_2', type: 'reasoning', text: 'hidden', metadata: { signature: 'kept' } },
      { ...ids, id: 'prt_3', type: 'text', text: 'looking' },
      tool('a', {
        status: 'completed',
        input: { command: 'x' },
        output: 'long output',
        attachments: [{ url: 'data:' }],
      }),
      tool('b', { status: 'error', input: { command: 'y' }, error: 'it failed' }),
      tool('c', { status: 'running', input: { command: 'z' } }),
    ],
  },
];

describe('the list of OpenCode', () => {
  const own = opencodeList('ses_1', opencodeMessages, { system: undefined });

  test('reports a message with calls as a message and its results', () => {
    expect(own.list.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'go'],
      ['assistant', 'looking'],
      ['tool', 'long output'],
      ['tool', 'it failed'],
    ]);
    expect(own.places).toEqual([0, 1, 1, 1]);
  });

  test('replaces an inactive result by its line in place and leaves the rest of its message alone', () => {
    const list = composed(
      own,
      context(0, [
        { index: 2, text: 'line a' },
        { index: 3, text: 'line b' },
      ]),
    );
    const parts = list[3]?.parts ?? [];
    const before = opencodeMessages[1]?.parts ?? [];
    expect(list[2]).toBe(opencodeMessages[0]);
    expect([0, 1, 2, 5].map((i) => parts[i] === before[i])).toEqual([true, true, true, true]);
    expect(parts[3]?.state).toEqual({ status: 'completed', input: { command: 'x' }, output: 'line a' });
    expect(parts[4]?.state).toEqual({ status: 'error', input: { command: 'y' }, error: 'line b' });
    expect(opencodeMessages[1]?.parts[3]?.state?.output).toBe('long output');
  });

  test('gives our messages the user’s role and the same session, identically each time', () => {
    const once = composed(own, context(0, []));
    expect(once[0]).toMatchObject({
      info: { role: 'user', sessionID: 'ses_1', agent: 'build' },
      parts: [{ type: 'text', text: 'the pool' }],
    });
    const lists = new HandedLists();
    const hashed = lists.of(once);
    expect(lists.of(composed(own, context(0, [])))).toEqual(hashed);
    expect(hashed.messages).toBe(5);
  });

  test('inserts our message behind the whole place of its anchor, under the same id in every list', () => {
    const last = own.places.lastIndexOf(1);
    const notes = (...indexes: readonly number[]): LoopContext['inserts'] =>
      indexes.map((index) => ({ index, message: part('pool', `note ${index}`) }));
    const of = (...indexes: readonly number[]) => composed(own, { ...context(0, []), inserts: notes(...indexes) });
    const [one, both] = [of(0), of(0, last)];
    expect(both.map(({ info }) => info.role)).toEqual(['user', 'user', 'user', 'user', 'assistant', 'user', 'user']);
    expect(both[3]?.parts.map(({ text }) => text)).toEqual(['note 0']);
    expect(both[5]?.parts.map(({ text }) => text)).toEqual([`note ${last}`]);
    expect(both.slice(0, 5)).toEqual(one.slice(0, 5));
    expect(new Set(both.map(({ info }) => info.id)).size).toBe(both.length);
  });

  test('drops the whole list at a border in the middle of a turn', () => {
    const list = composed(own, context(own.list.messages.length, []));
    expect(list.map(({ parts }) => parts[0]?.text)).toEqual(['the pool', 'the chat', 'what is active']);
  });
});

describe('the harness’s own list in place of ours', () => {
  const said = (n: number): PiMessage => ({
    role: 'assistant',
    api: 'anthropic-messages',
    timestamp: n,
    content: [
      { type: 'thinking', thinking: 'hm', thinkingSignature: 's' },
      { type: 'text', text: `said ${n}` },
    ],
  });
  const thoughts = (messages: readonly PiMessage[]): readonly unknown[] =>
    messages.map(({ timestamp, content }) => [timestamp, (content as readonly unknown[]).length === 2]);
  const listOf = (...messages: readonly PiMessage[]) => piList('s', messages, {});

  test('omits earlier thoughts while it is sent, and keeps new ones', () => {
    const own = new OwnLists<PiMessage>();
    expect(thoughts(own.of(listOf(said(1), said(2))))).toEqual([
      [1, false],
      [2, false],
    ]);
    expect(thoughts(own.of(listOf(said(1), said(2), said(3))))).toEqual([
      [1, false],
      [2, false],
      [3, true],
    ]);
    // After a compaction, another prefix precedes the rest.
    expect(thoughts(own.of(listOf(said(3))))).toEqual([[3, false]]);
    expect(thoughts(own.of(listOf(said(3), said(4))))).toEqual([
      [3, false],
      [4, true],
    ]);
  });

  test('keeps reasoning that its call requires, and messages without thoughts unchanged', () => {
    const other = { ...said(1), api: 'openai-responses' };
    const asked: PiMessage = { role: 'user', content: 'go', timestamp: 0 };
    const list = new OwnLists<PiMessage>().of(listOf(asked, other));
    expect([list[0], list[1]]).toEqual([asked, other]);
    expect(list[1]).toBe(other);
  });

  test('sends a reasoning part of OpenCode to the provider that signed it', () => {
    const info = { id: 'm', sessionID: 's', role: 'assistant' } as const;
    const base = { sessionID: 's', messageID: 'm', type: 'reasoning', text: 'hm' };
    const parts = [
      { ...base, id: 'p1', metadata: { anthropic: { signature: 's' } } },
      { ...base, id: 'p2', metadata: { openai: { itemId: 'i' } } },
    ];
    const [message] = new OwnLists<OpencodeMessage>().of(opencodeList('s', [{ info, parts }], { system: undefined }));
    expect(message?.parts.map(({ id }) => id)).toEqual(['p2']);
  });
});

describe('the usage that a provider reported', () => {
  const reported = { input: 3, output: 40, cache_read: 1_200, cache_write: 300 };

  test('belongs to the message that the call returned, in pi', () => {
    const said = (usage: object): PiMessage => ({ role: 'assistant', content: [], usage });
    const list = [
      said({ input: 3, output: 40, cacheRead: 1_200, cacheWrite: 300 }),
      said({ input: 0, output: 0 }),
      said({ output: 'many' }),
    ];
    expect(piList('s', list, {}).list.messages.map(({ usage }) => usage)).toEqual([reported, undefined, undefined]);
  });

  test('counts omitted blocks of thinking if pi reports them', () => {
    const dropped = (...transformations: readonly unknown[]) => ({
      type: 'anthropic_input_transformations',
      details: { transformations },
    });
    const gone = { type: 'thinking_dropped', path: 'messages.1.content.0', reason: 'prefix_binding_mismatch' };
    const said = (...diagnostics: NonNullable<PiMessage['diagnostics']>): PiMessage => ({
      role: 'assistant',
      content: [],
      usage: { input: 3 },
      diagnostics,
    });
    const list = [
      said(dropped(gone, { type: 'other' }, gone, null)),
      said({ type: 'retry' }),
      said({ type: 'anthropic_input_transformations' }),
      said(),
    ];
    expect(piList('s', list, {}).list.messages.map(({ usage }) => usage)).toEqual([
      { input: 3, thinking_dropped: 2 },
      { input: 3 },
      { input: 3 },
      { input: 3 },
    ]);
  });

  test('belongs to the message that the call returned, in OpenCode', () => {
    const tokens = { input: 3, output: 40, reasoning: 0, cache: { read: 1_200, write: 300 } };
    const info = { id: 'm', sessionID: 's', role: 'assistant', tokens } as const;
    const [message] = opencodeList('s', [{ info, parts: [] }], { system: undefined }).list.messages;
    expect(message?.usage).toEqual(reported);
  });
});

describe('the hash of a passed list', () => {
  test('is that of its canonical JSON, for any earlier lists', () => {
    const message = fc.record({
      role: fc.constantFrom('user', 'assistant'),
      content: fc.string(),
      n: fc.option(fc.nat(), { nil: undefined }),
    });
    fc.assert(
      fc.property(fc.array(fc.array(message, { maxLength: 6 }), { maxLength: 5 }), (lists) => {
        const hashed = new HandedLists();
        for (const list of lists) {
          const text = canonicalJson(JSON.parse(JSON.stringify(list)));
          expect(hashed.of(list)).toEqual({ sha256: hashText(text), chars: text.length, messages: list.length });
        }
      }),
    );
  });
});
