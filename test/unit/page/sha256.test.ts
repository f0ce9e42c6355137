import { createHash } from 'node:crypto';
import { afterEach, describe, expect, test } from '@jest/globals';
import { sha256 } from '../../../src/page/sha256.js';

const { crypto } = globalThis;
const known = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

describe('hashes in the page', () => {
  afterEach(() => {
    Object.defineProperty(globalThis, 'crypto', { value: crypto, configurable: true, writable: true });
  });

  test.each([
    ['by the browser', crypto],
    ['where the browser has no cryptography', undefined],
  ])('equal the standard ones, %s', async (_, given) => {
    Object.defineProperty(globalThis, 'crypto', { value: given, configurable: true, writable: true });
    for (const length of [0, 1, 55, 56, 63, 64, 65, 119, 128, 5_000]) {
      const bytes = new Uint8Array(length).map((_byte, i) => (i * 37 + length) & 0xff);
      expect(await sha256(bytes)).toBe(known(bytes));
    }
  });
});
