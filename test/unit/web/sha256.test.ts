import { createHash } from 'node:crypto';
import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ownSha256, sha256 } from '../../../web/sha256.js';

const known = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

test('our own SHA-256 is that of everybody else, at every length around a block and for any bytes', async () => {
  for (let length = 0; length <= 200; length += 1) {
    const bytes = new Uint8Array(length).map((_, i) => (i * 37 + length) & 0xff);
    expect(ownSha256(bytes)).toBe(known(bytes));
  }
  fc.assert(fc.property(fc.uint8Array({ maxLength: 5_000 }), (bytes) => ownSha256(bytes) === known(bytes)));
  const bytes = new Uint8Array(new TextEncoder().encode('palimpsest'));
  expect(await sha256(bytes)).toBe(known(bytes));
});
