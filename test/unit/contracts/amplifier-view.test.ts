import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  type AmplifierMessage,
  callsIn,
  namedEntries,
  reportedOf,
} from '../../../src/contracts/amplifier/amplifier-message.js';
import { messagesView } from '../../../src/contracts/amplifier/amplifier-view.js';
import { filledMessage, type GivenMessage, shapeOf } from '../../../src/contracts/amplifier/kept-shape.js';
import { type KeptShapes, listedEntries, listedMessages } from '../../../src/contracts/amplifier/message-list.js';
import { ProjectionError } from '../../../src/contracts/projection/errors.js';
import { NO_VIEW } from '../../../src/contracts/projection/shrink-view.js';
import { hashText } from '../../../src/objects/hashes.js';
import { BYTES, type Happening, happenings, projectionOf, WORDS } from '../../support/any-session.js';
import { effort } from '../../support/effort.js';
import { type PairedItem, pairFindings } from '../../support/pair-check.js';

const NOTHING: KeptShapes = { bySeq: new Map(), prompts: [], from: 0 };

function paired({ message }: GivenMessage): PairedItem {
  if (message.role === 'tool') return { kind: 'result', call: message.tool_call_id ?? '' };
  if (message.role === 'assistant') return { kind: 'assistant', calls: callsIn(message).map(({ id }) => id) };
  return { kind: message.role === 'user' ? 'user' : 'other' };
}

const wishes = fc.record({
  budget: fc.integer({ min: 1, max: 6_000 }),
  targetUsage: fc.constantFrom(0.5, 0.9),
  compactThreshold: fc.constantFrom(0.9, 1),
  protectedRecent: fc.constantFrom(0, 0.3),
  protectedToolResults: fc.integer({ min: 0, max: 5 }),
  maxToolResultBytes: fc.constantFrom(40, 131_072),
  summary: fc.boolean(),
  preserveSystem: fc.boolean(),
});

describe('any session as messages of Amplifier', () => {
  test('keep to the limit and whole pairs, deterministically, without changing the list', () => {
    fc.assert(
      fc.property(happenings, wishes, fc.constantFrom(BYTES, WORDS), (all, wish, counter) => {
        const projection = projectionOf(all, counter);
        const listed = listedEntries(projection, NOTHING);
        const before = JSON.stringify(listedMessages(listed, NOTHING));
        const counting = { kept: NOTHING, wish, counter, state: NO_VIEW };
        try {
          const { view, messages } = messagesView(listed, counting);
          expect(view.tokens).toBeLessThanOrEqual(wish.budget);
          const open = new Set(projection.running?.calls.map(({ native }) => native));
          const findings = pairFindings(messages.map(paired), { running: true }).filter(
            ({ rule, call }) => rule !== 'unfinished-turn' && !(rule === 'missing-result' && open.has(call ?? '')),
          );
          expect(findings).toEqual([]);
          expect(messagesView(listed, counting)).toEqual({ view, messages });
          const next = messagesView(listed, { ...counting, state: view.state });
          expect(next.messages).toEqual(messages);
          expect(next.view.shrunk).toBeUndefined();
        } catch (error) {
          if (!(error instanceof ProjectionError)) throw error;
          expect(error.code).toBe('budget-too-small');
        }
        expect(JSON.stringify(listedMessages(listed, NOTHING))).toBe(before);
      }),
      { numRuns: effort(100, 1_000) },
    );
  });
});

test('continue from the previous view instead of shrinking with each message, if new messages exceed it', () => {
  const turn = (n: number): readonly Happening[] => [
    { kind: 'user', text: `question ${n} ${'why '.repeat(40)}` },
    { kind: 'said', text: `answer ${n} ${'so '.repeat(40)}` },
  ];
  const wish = { budget: 4_000, targetUsage: 0.5, compactThreshold: 0.9, protectedRecent: 1, protectedToolResults: 5 };
  let state = NO_VIEW;
  const shrunk: number[] = [];
  for (let turns = 60; turns < 80; turns++) {
    const projection = projectionOf(Array.from({ length: turns }, (_, n) => turn(n)).flat(), WORDS);
    const { view } = messagesView(listedEntries(projection, NOTHING), { kept: NOTHING, wish, counter: WORDS, state });
    if (view.shrunk !== undefined) shrunk.push(turns);
    state = view.state;
  }
  expect(shrunk).toEqual([60]);
});

describe('parsing a message', () => {
  test('turns result blocks into messages before the rest of the text', () => {
    const blocks = [
      { type: 'tool_result', tool_call_id: 'a', output: 'one' },
      { type: 'tool_result', tool_use_id: 'b', content: [{ type: 'text', text: 'two' }] },
      { type: 'text', text: 'and now?' },
    ];
    const entries = namedEntries({ id: 'm', message: { role: 'user', content: blocks } }, 0);
    expect(entries.map(({ id, message: { role, content, tool_call_id: call } }) => [id, role, call, content])).toEqual([
      ['m', 'tool', 'a', 'one'],
      ['m.1', 'tool', 'b', '[{"type":"text","text":"two"}]'],
      ['m.2', 'user', undefined, [{ type: 'text', text: 'and now?' }]],
    ]);
  });

  test('recognises calls in each form, and keeps thinking out of the text', () => {
    const call = { type: 'tool_call', id: 'x', name: 'look', input: { at: 1 } };
    const message: AmplifierMessage = {
      role: 'assistant',
      content: [{ type: 'thinking', thinking: 'hm' }, { type: 'text', text: 'so' }, call],
    };
    expect(callsIn(message)).toEqual([{ id: 'x', name: 'look', arguments: { at: 1 } }]);
    expect(
      callsIn({ role: 'assistant', content: null, tool_calls: [{ id: 'y', tool: 'look', arguments: '{}' }] }),
    ).toEqual([{ id: 'y', name: 'look', arguments: '{}' }]);
    expect(reportedOf(message, 'm').content).toEqual([{ type: 'text', text: 'so' }]);
  });

  test('keeps the extra data within the size of a record', () => {
    const large = 'x'.repeat(500_000);
    const kept = (message: AmplifierMessage) => shapeOf(message, BYTES);
    const size = (message: AmplifierMessage): number => JSON.stringify(kept(message).shape).length;
    expect(kept({ role: 'tool', tool_call_id: 'a', content: large })).toEqual({
      shape: { message: { role: 'tool', tool_call_id: 'a' }, isText: true },
      texts: [],
    });
    expect(
      size({ role: 'assistant', content: '', tool_calls: [{ id: 'a', tool: 'write', arguments: { large } }] }),
    ).toBeLessThan(100);
    expect(size({ role: 'user', content: 'a', metadata: { large } })).toBeLessThan(100);
  });

  test('restores blocks of any size from the stored part and the texts that it names', () => {
    const sizes = fc.array(fc.constantFrom(1, 900, 50_000, 70_000), { maxLength: 14 });
    fc.assert(
      fc.property(sizes, fc.constantFrom('image', 'thinking', 'text', 'tool_use'), (all, type) => {
        const content = all.map((length, i) => ({ type, id: `b${i}`, name: 'look', z: 'é'.repeat(length), a: [i] }));
        const { shape, texts } = shapeOf({ role: 'assistant', content }, BYTES);
        const { message, long = [] } = shape;
        expect(JSON.stringify(shape).length).toBeLessThanOrEqual(400_000);
        const given = { message: message as unknown as AmplifierMessage, long };
        expect(callsIn(given.message).map(({ id }) => id)).toEqual(
          type === 'tool_use' ? content.map(({ id }) => id) : [],
        );
        expect(filledMessage(given, new Map(texts.map((text) => [hashText(text), text]))).content).toEqual(content);
      }),
      { numRuns: effort(30, 300) },
    );
  });
});
