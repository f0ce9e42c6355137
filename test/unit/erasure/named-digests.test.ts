import { expect, test } from '@jest/globals';
import { digestsIn, partsOf } from '../../../src/erasure/named-digests.js';

const digest = '5f'.repeat(32);

test('finds a digest only where no further hexadecimal digit precedes or follows it', () => {
  expect(digestsIn(`{"hash":"${digest}"} chunk:${digest}~ ${digest}0`)).toEqual([digest, digest]);
});

test('the parts of a text have ids in the current data format and in the first one', () => {
  expect(partsOf(digest)).toEqual([`chunk:${digest}~`, `chunks:${digest}~`, `chunk:${digest}`, `chunks:${digest}`]);
});
