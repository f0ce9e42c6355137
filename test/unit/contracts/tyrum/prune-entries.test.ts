import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { Entry } from '../../../../src/contracts/projection/entry.js';
import { type PrunedEntries, pruneEntries } from '../../../../src/contracts/tyrum/prune-entries.js';
import { type Happening, happenings, projectionOf } from '../../../support/any-session.js';
import { effort } from '../../../support/effort.js';
import { entryFindings } from '../../../support/pair-check.js';

const turn = (n: number): readonly Happening[] => [
  { kind: 'user', text: `ask ${n}` },
  { kind: 'calls', text: n % 2 === 0 ? '' : `I read ${n}`, calls: [{ output: `out ${n}`, args: { n }, when: 'now' }] },
  { kind: 'said', text: `done ${n}` },
];
const turns = (count: number): readonly Happening[] => Array.from({ length: count }, (_, i) => turn(i + 1)).flat();
const texts = ({ entries }: Pick<PrunedEntries, 'entries'>): readonly (string | null)[] =>
  entries.map(({ text }) => text);
const sent = (entries: readonly Entry[]): number => entries.filter(({ kind }) => kind !== 'approval').length;
const isOfModel = ({ kind }: Entry): boolean => kind === 'assistant' || kind === 'result';

describe('pruning a list as Tyrum does', () => {
  test('drops older results with their calls, also without a message limit; drops bare call messages', () => {
    const { entries } = projectionOf(turns(3));
    const pruned = pruneEntries(entries);
    expect(texts(pruned).slice(1)).toEqual([
      'ask 1',
      'I read 1',
      'done 1',
      'ask 2',
      'done 2',
      'ask 3',
      'I read 3',
      'out 3',
      'done 3',
    ]);
    expect(pruned.results).toHaveLength(2);
    expect(pruned.messages).toHaveLength(1);
    expect(entryFindings(pruned.entries, { running: false })).toEqual([]);
  });

  test('keeps the results of the last messages, and the call of each kept result', () => {
    const { entries } = projectionOf(turns(2));
    // The last two messages are the second turn's result and the reply to it. Its call comes before
    // them.
    const two = pruneEntries(entries, { keepLastMessages: 2 });
    expect(texts(two).slice(-4)).toEqual(['ask 2', '', 'out 2', 'done 2']);
    expect(texts(pruneEntries(entries, { keepLastMessages: 100 }))).toEqual(entries.map(({ text }) => text));
  });

  test('keeps within a limit the beginning and the newest messages, which never begin with a result', () => {
    const { entries } = projectionOf(turns(9));
    const pruned = pruneEntries(entries, { maxMessages: 8, keepLastMessages: 40 });
    expect(texts(pruned).slice(1)).toEqual(['ask 1', 'done 8', 'ask 9', 'I read 9', 'out 9', 'done 9']);
    expect(sent(pruned.entries)).toBeLessThanOrEqual(8);
    expect(pruned.entries.slice(2).find(isOfModel)?.kind).toBe('assistant');
  });

  test('refuses numbers below their minimum and names it; 0 means no limit', () => {
    const { entries } = projectionOf(turns(1));
    for (const maxMessages of [-1, 1, 7, 8.5, Number.NaN])
      expect(() => pruneEntries(entries, { maxMessages })).toThrow(
        `max_messages is ${maxMessages}: give 0 for no limit, or at least 8`,
      );
    for (const keepLastMessages of [0, 1, -3])
      expect(() => pruneEntries(entries, { keepLastMessages })).toThrow(
        `tool_prune_keep_last_messages is ${keepLastMessages}: give 2 or more`,
      );
    expect(sent(pruneEntries(entries, { maxMessages: 0 }).entries)).toBe(sent(entries));
  });

  test('keeps pairs, the limit, pending calls, and users and system without a limit, for any history', () => {
    const settings = fc.record({
      maxMessages: fc.constantFrom(0, 8, 9, 12, 30),
      keepLastMessages: fc.integer({ min: 2, max: 12 }),
    });
    fc.assert(
      fc.property(happenings, settings, (list, given) => {
        const { entries, running } = projectionOf(list);
        const before = JSON.stringify(entries);
        const pruned = pruneEntries(entries, given);
        expect(pruneEntries(entries, given)).toEqual(pruned);
        expect(JSON.stringify(entries)).toBe(before);
        const broken = entryFindings(entries, { running: running !== undefined }).map(({ rule }) => rule);
        // A limit may drop the model's answer to a result, never half a pair.
        const found = entryFindings(pruned.entries, { running: running !== undefined }).filter(
          ({ rule }) => rule !== 'unfinished-turn',
        );
        expect(found.filter(({ rule }) => !broken.includes(rule))).toEqual([]);
        const there = new Set(pruned.entries.map(({ id }) => id));
        const waits = entries.filter(
          (entry) =>
            entry === entries.findLast(({ kind }) => kind === 'user') ||
            (entry.kind === 'assistant' && entry.calls.some(({ state }) => state === 'pending')) ||
            (entry.kind === 'approval' && entry.state === 'pending'),
        );
        for (const { id } of waits) expect(there).toContain(id);
        if (given.maxMessages === 0) {
          for (const { id, kind, text } of entries)
            if (kind !== 'result' && (kind !== 'assistant' || text !== '')) expect(there).toContain(id);
        } else if (waits.length <= 1) expect(sent(pruned.entries)).toBeLessThanOrEqual(given.maxMessages);
      }),
      { numRuns: effort(150, 1_500) },
    );
  });
});
