import { expect, test } from '@jest/globals';
import { digestsIn, partsOf } from '../../../src/erasure/named-digests.js';

const digest = '5f'.repeat(32);

test('a digest is named only where no more digits stand beside it', () => {
  expect(digestsIn(`{"hash":"${digest}"} chunk:${digest}~ ${digest}0`)).toEqual([digest, digest]);
});

test('the parts of a text have the ids of this data format and of the first', () => {
  expect(partsOf(digest)).toEqual([`chunk:${digest}~`, `chunks:${digest}~`, `chunk:${digest}`, `chunks:${digest}`]);
});
