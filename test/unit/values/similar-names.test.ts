import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { editDistance, similarNames, similarPaths } from '../../../src/values/similar-names.js';

describe('names like another', () => {
  test('a swap of neighbours counts as one edit', () => {
    expect(editDistance('poem', 'pome')).toBe(1);
    expect(editDistance('kitten', 'sitting')).toBe(3);
    expect(editDistance('', 'abc')).toBe(3);
  });

  test('the distance is the same both ways, and none for the same word', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
        expect(editDistance(a, b, 20)).toBe(editDistance(b, a, 20));
        expect(editDistance(a, a)).toBe(0);
      }),
    );
  });

  test('the best come first; what is not alike is not suggested', () => {
    expect(similarNames('indx.ts', ['main.ts', 'index.ts', 'INDEX.ts', 'index.test.ts'])).toEqual(['INDEX.ts', 'index.ts']);
    expect(similarNames('config', ['tsconfig.json', 'zebra'])).toEqual(['tsconfig.json']);
    expect(similarNames('x', ['abc'])).toEqual([]);
  });

  test('a name composed otherwise is the nearest; the name itself is never suggested', () => {
    const [composed, decomposed] = ['café.txt'.normalize('NFC'), 'café.txt'.normalize('NFD')];
    expect(similarNames(composed, ['cafe.txt', decomposed])).toEqual([decomposed, 'cafe.txt']);
    expect(similarNames('link', ['link', 'links'])).toEqual(['links']);
  });

  test('of paths the last names are compared, and the very same ones come first', () => {
    const paths = ['/r/lib/cart.ts', '/r/src/cart.ts', '/r/src/carts.ts', '/r/zebra.md'];
    expect(similarPaths('/r/src/cart.ts', paths)).toEqual(['/r/lib/cart.ts', '/r/src/carts.ts']);
    expect(similarPaths('crat.ts', paths)).toEqual(['/r/lib/cart.ts', '/r/src/cart.ts', '/r/src/carts.ts']);
  });
});
