import { describe, expect, test } from '@jest/globals';
import { type PairedItem, pairFindings } from '../../../support/pair-check.js';

const user: PairedItem = { kind: 'user' };
const other: PairedItem = { kind: 'other' };
const said = (...calls: readonly string[]): PairedItem => ({ kind: 'assistant', calls });
const result = (call: string): PairedItem => ({ kind: 'result', call });

describe('the pair rules', () => {
  test.each<[string, readonly PairedItem[], readonly string[]]>([
    ['a whole turn', [user, said('a'), result('a'), said()], []],
    [
      'six calls of one message',
      [user, said('1', '2', '3', '4', '5', '6'), ...['1', '2', '3', '4', '5', '6'].map(result), said()],
      [],
    ],
    ['an empty list', [], []],
    ['a call without its result', [user, said('a')], ['missing-result 1']],
    ['two calls with one missing result', [user, said('a', 'b'), result('a'), user, said()], ['missing-result 1']],
    ['results without a final answer', [user, said('a'), result('a')], ['unfinished-turn 2']],
    ['an earlier turn without a final answer', [user, said('a'), result('a'), user, said()], ['unfinished-turn 2']],
    ['a message between call and result', [user, said('a'), user, result('a'), said()], ['late-result 3']],
    ['a reminder between call and result', [user, said('a'), other, result('a'), said()], ['late-result 3']],
    ['a result without a call', [result('a')], ['orphan-result 0']],
    ['a result before its call', [result('a'), said('a')], ['early-result 0']],
    ['results in the wrong order', [user, said('a', 'b'), result('b'), result('a'), said()], ['wrong-order 3']],
    ['a result twice', [user, said('a'), result('a'), result('a'), said()], ['repeated-result 3']],
    [
      'an id twice',
      [user, said('a'), result('a'), said('a'), result('a'), said()],
      ['repeated-call 3', 'repeated-result 4'],
    ],
  ])('finds exactly the broken rules of %s', (_name, items, expected) => {
    expect(pairFindings(items).map(({ rule, at }) => `${rule} ${at}`)).toEqual(expected);
  });

  test.each<[string, readonly PairedItem[], readonly string[]]>([
    ['pending calls', [user, said('a', 'b'), result('a')], []],
    ['results before the model has answered', [user, said('a'), result('a')], []],
    ['a pending call before a later turn', [user, said('a'), user, said()], ['missing-result 1']],
    ['a result without a call', [user, result('a')], ['orphan-result 1']],
  ])('in a running turn, finds exactly the broken rules of %s', (_name, items, expected) => {
    expect(pairFindings(items, { running: true }).map(({ rule, at }) => `${rule} ${at}`)).toEqual(expected);
  });
});
