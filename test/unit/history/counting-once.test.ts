import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type CountTexts, countingOnce } from '../../../src/history/ask/tokenizer.js';

describe('counting once', () => {
  test('gives the counts of any lists of texts, and has no text counted twice', async () => {
    const text = fc.string({ maxLength: 2 });
    await fc.assert(
      fc.asyncProperty(fc.array(fc.array(text, { minLength: 1 })), async (lists) => {
        const counted: string[] = [];
        const count: CountTexts = async (texts) => {
          counted.push(...texts);
          return texts.map(({ length }) => length + 7);
        };
        const once = countingOnce(count);
        for (const list of lists) expect(await once(list)).toEqual(list.map(({ length }) => length + 7));
        expect(counted.toSorted()).toEqual([...new Set(lists.flat())].sort());
      }),
    );
  });

  test('has whoever counts get ready where nothing is to be counted', async () => {
    let asked = 0;
    const once = countingOnce(async () => {
      asked += 1;
      return [];
    });
    expect(await once([])).toEqual([]);
    expect(asked).toBe(1);
  });

  test('a failure is told to whoever asked, and what failed is counted when it is asked for again', async () => {
    let fails = true;
    const once = countingOnce(async (texts) => {
      if (fails) throw new Error('not now');
      return texts.map(() => 1);
    });
    await expect(once(['a'])).rejects.toThrow('not now');
    fails = false;
    expect(await once(['a'])).toEqual([1]);
  });
});
