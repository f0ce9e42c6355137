import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeTransit, encodeTransit } from '../../../src/edn/transit.js';
import { elements, kwMap, list } from '../../../src/edn/values.js';
import { takeListElements } from '../../../src/xtdb/list-prefix.js';

describe('the first elements of a streamed list', () => {
  const entries = Array.from({ length: 5 }, (_, i) => kwMap({ 'xtdb.api/tx-id': i, 'xtdb.api/tx-ops': [['a]"\\', '[', '"'.repeat(i)]] }));
  // Names after the first are references, as a node writes them.
  const text = encodeTransit(list(...entries)).replace(/(?<=tx-ops.*)"~:xtdb.api\/tx-id"/g, '"^1"');

  test('hold names that refer back', () => {
    expect(text.match(/"\^1"/g)).toHaveLength(4);
  });

  test('are complete wherever the pieces are cut, with names that are referred back to', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: text.length }), (count, size) => {
        const take = takeListElements(count);
        let whole: string | undefined;
        for (let at = 0; at < text.length && whole === undefined; at += size) whole = take(text.slice(at, at + size));
        expect(elements(decodeTransit(whole ?? ''))).toEqual(entries.slice(0, count));
      }),
    );
  });

  test('a shorter list, and an answer that is no list, are read to their ends', () => {
    expect(takeListElements(6)(text)).toBeUndefined();
    expect(takeListElements(1)('[["a"],["b"]]')).toBeUndefined();
  });
});
