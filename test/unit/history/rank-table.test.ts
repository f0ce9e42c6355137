import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import ranks from 'gpt-tokenizer/bpeRanks/o200k_base';
import { openRanks, packRanks, type RankList } from '../../../src/review/ask/rank-table.js';

const isText = (token: string | readonly number[]): token is string => typeof token === 'string';

/** Few letters, so that many texts share a beginning and some collide in the table. */
const text = fc.string({
  unit: fc.constantFrom('a', 'b', ' ', 'é', '漢', '\ud83d', '\ude00'),
  minLength: 1,
  maxLength: 6,
});
const vocabulary: fc.Arbitrary<RankList> = fc
  .record({
    texts: fc.uniqueArray(text, { minLength: 1, maxLength: 60 }),
    bytes: fc.array(fc.array(fc.integer({ min: 0x80, max: 0xff }), { minLength: 1, maxLength: 3 }), { maxLength: 5 }),
  })
  .chain(({ texts, bytes }) =>
    fc.shuffledSubarray<string | readonly number[]>([...texts, ...bytes], { minLength: texts.length + bytes.length }),
  );

describe('a packed vocabulary', () => {
  test('knows the ranks of its texts and of no others', () => {
    fc.assert(
      fc.property(vocabulary, fc.array(text), (list, others) => {
        const table = openRanks(packRanks(list));
        const known = new Map(list.flatMap((token, rank) => (isText(token) ? [[token, rank] as const] : [])));
        for (const one of [...known.keys(), ...others, '', 'a'.repeat(200)])
          expect(table.get(one)).toBe(known.get(one));
      }),
    );
  });

  test('holds pieces that are not valid text at their ranks, and nothing else there', () => {
    fc.assert(
      fc.property(vocabulary, (list) => {
        expect(openRanks(packRanks(list)).bytes).toEqual(
          new Map(list.flatMap((token, rank) => (isText(token) ? [] : [[rank, token] as const]))),
        );
      }),
    );
  });

  test("equals the library's whole list", () => {
    const table = openRanks(packRanks(ranks));
    const wrong = ranks.filter(
      (token, rank) =>
        (isText(token) ? table.get(token) : table.bytes.get(rank)?.toString()) !==
        (isText(token) ? rank : token.toString()),
    );
    expect(wrong).toEqual([]);
    expect(table.bytes.size).toBe(ranks.filter((token) => !isText(token)).length);
    expect(table.get('no such token')).toBeUndefined();
  });

  test('is refused if it is cut off', () => {
    expect(() => openRanks(packRanks(['a', 'ab', [0xff]]).slice(0, -8))).toThrow(RangeError);
  });
});
