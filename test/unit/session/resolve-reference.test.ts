import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type ObjectId, objectId } from '../../../src/objects/ids.js';
import { resolveReference, shortId, shortIds } from '../../../src/session/object-reference.js';

const PATHS: Readonly<Record<string, string>> = {
  aaaabbbb1111: '/src/a.ts',
  aaaabbbb2222: '/src/b c.ts',
  ccccdddd: 'aaaabbbb',
  eeeeffff0000: '/twice',
  eeeeffff1111: '/twice',
};
const index = [...Object.keys(PATHS), 'call_1', 'call_10'].map(objectId);
const resolve = (text: string) => resolveReference(text, index, (id) => PATHS[id]);

describe('resolving a reference (decision D6)', () => {
  test('accepts a full id, also a short one and one that begins another id', () => {
    expect(resolve('aaaabbbb1111')).toEqual({ kind: 'found', id: 'aaaabbbb1111' });
    expect(resolve('call_1')).toEqual({ kind: 'found', id: 'call_1' });
  });

  test('accepts a unique prefix of eight characters, not of seven', () => {
    expect(resolve('aaaabbbb1')).toEqual({ kind: 'found', id: 'aaaabbbb1111' });
    expect(resolve('ccccddd')).toEqual({ kind: 'unknown' });
    expect(resolve('eeeeffff')).toEqual({ kind: 'ambiguous', candidates: ['eeeeffff0000', 'eeeeffff1111'] });
  });

  test('accepts an exact display path, also quoted as in the pool', () => {
    expect(resolve('/src/a.ts')).toEqual({ kind: 'found', id: 'aaaabbbb1111' });
    expect(resolve('/src/a.t')).toEqual({ kind: 'unknown' });
    expect(resolve('"/src/b c.ts"')).toEqual({ kind: 'found', id: 'aaaabbbb2222' });
    expect(resolve('/twice')).toEqual({ kind: 'ambiguous', candidates: ['eeeeffff0000', 'eeeeffff1111'] });
  });

  test('resolves a path that looks like a prefix to its file', () => {
    expect(resolve('aaaabbbb')).toEqual({ kind: 'found', id: 'ccccdddd' });
  });

  test('distinguishes infrastructure objects from unknown ones', () => {
    expect([resolve('session:s1'), resolve('"chat:s1"'), resolve('system_prompt:x')]).toEqual(
      Array(3).fill({ kind: 'infrastructure' }),
    );
    expect([resolve(''), resolve('""'), resolve('"'), resolve('"{'), resolve('nobody at all')]).toEqual(
      Array(5).fill({ kind: 'unknown' }),
    );
  });

  test('names the first five of many candidates, in the order of the index', () => {
    const many = Array.from({ length: 9 }, (_, i) => objectId(`prefix-${9 - i}`));
    expect(resolveReference('prefix-', many, () => undefined)).toEqual({ kind: 'unknown' });
    const longer = many.map((id) => objectId(`long-${id}`));
    expect(resolveReference('long-prefix-', longer, () => undefined)).toEqual({
      kind: 'ambiguous',
      candidates: longer.slice(0, 5),
    });
  });
});

describe('short ids (decision D6)', () => {
  test('are the shortest unique prefixes of at least eight characters', () => {
    expect([...shortIds(index)]).toEqual([
      ['aaaabbbb1111', 'aaaabbbb1'],
      ['aaaabbbb2222', 'aaaabbbb2'],
      ['call_1', 'call_1'],
      ['call_10', 'call_10'],
      ['ccccdddd', 'ccccdddd'],
      ['eeeeffff0000', 'eeeeffff0'],
      ['eeeeffff1111', 'eeeeffff1'],
    ]);
    expect(shortId(objectId('aaaabbbb1111'), [])).toBe('aaaabbbb');
  });

  test('each resolve to their own object, for any ids', () => {
    const id = fc.oneof(
      fc.string({ unit: fc.constantFrom('a', 'b', '\u{1f600}', '\u{1f601}'), minLength: 1, maxLength: 14 }),
      fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 }),
    );
    fc.assert(
      fc.property(fc.uniqueArray(id, { minLength: 1, maxLength: 30 }), (texts) => {
        const ids = texts.map((text): ObjectId => objectId(`x${text}`));
        for (const [full, short] of shortIds(ids)) {
          expect(short.isWellFormed()).toBe(true);
          expect(resolveReference(short, ids, () => undefined)).toEqual({ kind: 'found', id: full });
          expect(short).toBe(shortId(full, ids));
        }
      }),
    );
  });
});
