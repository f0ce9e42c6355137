import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { editDistance, similarNames, similarPaths } from '../../../src/values/similar-names.js';

describe('similar names', () => {
  test('count a swap of neighbours as one edit', () => {
    expect(editDistance('poem', 'pome')).toBe(1);
    expect(editDistance('kitten', 'sitting')).toBe(3);
    expect(editDistance('', 'abc')).toBe(3);
  });

  test('have a symmetric distance, zero for the same word', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 12 }), fc.string({ maxLength: 12 }), (a, b) => {
        expect(editDistance(a, b, 20)).toBe(editDistance(b, a, 20));
        expect(editDistance(a, a)).toBe(0);
      }),
    );
  });

  test('are suggested best first, and dissimilar ones not at all', () => {
    expect(similarNames('indx.ts', ['main.ts', 'index.ts', 'INDEX.ts', 'index.test.ts'])).toEqual([
      'INDEX.ts',
      'index.ts',
    ]);
    expect(similarNames('config', ['tsconfig.json', 'zebra'])).toEqual(['tsconfig.json']);
    expect(similarNames('x', ['abc'])).toEqual([]);
  });

  test('rank a name in another Unicode form first, and never suggest the name itself', () => {
    const [composed, decomposed] = ['café.txt'.normalize('NFC'), 'café.txt'.normalize('NFD')];
    expect(similarNames(composed, ['cafe.txt', decomposed])).toEqual([decomposed, 'cafe.txt']);
    expect(similarNames('link', ['link', 'links'])).toEqual(['links']);
  });

  test('compare paths by their file names, with identical ones first', () => {
    const paths = ['/r/lib/cart.ts', '/r/src/cart.ts', '/r/src/carts.ts', '/r/zebra.md'];
    expect(similarPaths('/r/src/cart.ts', paths)).toEqual(['/r/lib/cart.ts', '/r/src/carts.ts']);
    expect(similarPaths('crat.ts', paths)).toEqual(['/r/lib/cart.ts', '/r/src/cart.ts', '/r/src/carts.ts']);
  });
});
