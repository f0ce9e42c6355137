import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type CountTexts, countingOnce } from '../../../src/history/rebuild/tokenizer.js';

describe('counting once', () => {
  test('counts each text once and returns the counts of every list', async () => {
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

  test('prepares the counter even if there is nothing to count', async () => {
    let asked = 0;
    const once = countingOnce(async () => {
      asked += 1;
      return [];
    });
    expect(await once([])).toEqual([]);
    expect(asked).toBe(1);
  });

  test('reports a failure to the caller and counts again on the next request', async () => {
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
