import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { GrowingTail, keptList } from '../../../src/harness/growing-tail.js';
import { GrowingHistory, type History, historyOf, startOf } from '../../../src/harness/history-item.js';
import { keptMessages } from '../../../src/harness/kept-messages.js';
import type { ReportedMessage } from '../../../src/harness/message-schema.js';
import type { PlacedEntry } from '../../../src/harness/reported-chat.js';
import { objectId } from '../../../src/objects/ids.js';

/**
 * A message of a list. Some announce calls; later messages may hold their results in any order, or
 * none.
 */
const message: fc.Arbitrary<ReportedMessage> = fc.oneof(
  fc.record({ role: fc.constantFrom('user', 'assistant'), content: fc.constantFrom('', 'go', 'on') }),
  fc.record({
    role: fc.constant('assistant'),
    content: fc.constantFrom('', 'I look'),
    tool_calls: fc.array(fc.record({ id: fc.constantFrom('a', 'b', 'c'), name: fc.constantFrom('read', 'bash') }), {
      minLength: 1,
      maxLength: 2,
    }),
  }),
  fc.record({
    role: fc.constant('tool'),
    name: fc.constant('read'),
    tool_call_id: fc.constantFrom('a', 'b', 'c'),
    content: fc.constantFrom('x', '1\ty'),
  }),
  fc.record({ role: fc.constantFrom('system', 'custom'), content: fc.constant('be good') }),
);

/** Edits that turn a list into the next one. */
const edits = fc.array(
  fc.oneof(
    {
      weight: 4,
      arbitrary: fc.record({ kind: fc.constant('append' as const), messages: fc.array(message, { maxLength: 3 }) }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('change' as const), at: fc.nat(9), message }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove' as const), at: fc.nat(9) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('cut' as const), at: fc.nat(9) }) },
  ),
  { maxLength: 10 },
);
type Edit = typeof edits extends fc.Arbitrary<readonly (infer E)[]> ? E : never;

function edited(list: readonly ReportedMessage[], edit: Edit): readonly ReportedMessage[] {
  if (edit.kind === 'append') return [...list, ...edit.messages];
  if (edit.kind === 'change') return list.map((one, i) => (i === edit.at ? edit.message : one));
  return edit.kind === 'remove' ? list.filter((_, i) => i !== edit.at) : list.slice(0, edit.at);
}

const placed = new Map<string, PlacedEntry>();

/** Assigns places to the entries of a history: the same objects for the same entries. */
const placedOf = ({ items }: History): readonly PlacedEntry[] =>
  items.map(({ kind, index }, at) => {
    const name = `${kind} ${index} ${at}`;
    const entry = placed.get(name) ?? {
      kind,
      index,
      turn: 1,
      seq: at + 1,
      ...(kind === 'call' ? { callId: objectId(`call_${at}`) } : {}),
    };
    placed.set(name, entry);
    return entry;
  });

const plain = ({ systemPrompt, items, open, settled }: History) => ({ systemPrompt, items, open: [...open], settled });

describe('a list that continues the previous one', () => {
  test('is parsed, hashed and shown as if it were the first list', () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 4 }), edits, fc.nat(4), (begun, steps, from) => {
        const growing = new GrowingHistory();
        const tail = new GrowingTail(growing);
        let list = begun;
        let before = keptList(list, Math.min(from, list.length));
        const first: Edit = { kind: 'append', messages: [] };
        for (const edit of [first, ...steps]) {
          list = [...edited(list, edit)];
          const whole = historyOf(list);
          const grown = growing.of(list);
          expect(plain(grown)).toEqual(plain(whole));
          expect(startOf(grown)).toBe(whole.settled.at(-1));
          const given = { messages: list, placed: placedOf(whole) };
          const [kept, fresh] = [keptMessages(given, before, tail), keptMessages(given, before)];
          expect(kept?.list).toEqual(fresh?.list);
          const input = { pool: [] } as never;
          const shown = (one: typeof kept) => {
            const { count, results, reads } = one?.shown(input) ?? {};
            return {
              count,
              results: results && [...results],
              reads: reads?.map(({ whole: text, ...read }) => ({ ...read, text: text() })),
            };
          };
          expect(shown(kept)).toEqual(shown(fresh));
          const begins = Math.min(from, list.length);
          expect(tail.chars(given, begins)).toBe(new GrowingTail().from(given, begins).chars);
          before = tail.from(given, begins).list;
          expect(before).toEqual(keptList(list, begins));
        }
      }),
      { numRuns: 500 },
    );
  });

  test('refuses a result without its call each time, and continues without it', () => {
    const growing = new GrowingHistory();
    const list: ReportedMessage[] = [{ role: 'user', content: 'go' }];
    growing.of(list);
    const wrong: ReportedMessage = { role: 'tool', tool_call_id: 'none', content: 'x' };
    for (let i = 0; i < 2; i++)
      expect(() => growing.of([...list, { role: 'assistant', content: 'on' }, wrong])).toThrow(
        expect.objectContaining({ code: 'unknown-call' }),
      );
    list.push({ role: 'assistant', content: 'done' });
    expect(plain(growing.of(list))).toEqual(plain(historyOf(list)));
  });
});
