import { createHash } from 'node:crypto';
import { serialize } from 'node:v8';
import { describe, expect, test } from '@jest/globals';
import { directString } from '../../../src/assembly/rendered-value.js';

/** V8's serialisation tag of a one-byte string. It is the third byte, after the two-byte header. */
const ONE_BYTE = '"'.charCodeAt(0);
const isNarrow = (text: string): boolean => serialize(text)[2] === ONE_BYTE;

/** Returns a new text that was just used as the key of an object. */
function usedAsKey(text: string): string {
  const made = createHash('sha256').update(text).digest('hex');
  const keys: Record<string, number> = {};
  keys[made] = 1;
  return made;
}

describe('a string that served as an object key', () => {
  test('does not widen a text that it is joined into', () => {
    // V8 of Node 20 widens it; later versions do not.
    expect(isNarrow(['id=', usedAsKey('one')].join(''))).toBe(!process.versions.v8.startsWith('11.3.'));
    expect(isNarrow(['id=', directString(usedAsKey('two'))].join(''))).toBe(true);
  });

  test.each(['', '7', '__proto__', 'toString', 'ü→😀', 'x'.repeat(10_000)])('keeps its text (%.10s)', (text) => {
    expect(directString(text)).toBe(text);
    expect(directString(text)).toBe(text);
  });
});
