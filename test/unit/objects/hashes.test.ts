import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson } from '../../../src/objects/canonical-json.js';
import {
  assignedIdentityHash,
  GrowingHash,
  hashedText,
  hashText,
  hashTexts,
  sourcedIdentityHash,
  utf8Of,
} from '../../../src/objects/hashes.js';
import { canonicalPath, filesystemId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';

const plain = (text: string): string => createHash('sha256').update(text, 'utf8').digest('hex');
const long = (mark: string): string => `${mark.repeat(5_000)}ü😀`;

describe('hashes of texts', () => {
  test('are right for long texts the first time, again, and after many others', () => {
    for (let round = 0; round < 3; round++) {
      for (const mark of ['a', 'b', 'c', 'd', 'e', 'f']) {
        expect(hashText(long(mark))).toBe(plain(long(mark)));
        expect(hashText(long(mark))).toBe(plain(long(mark)));
      }
    }
  });

  test('are equal for a file and its content, with a byte order mark [§2.4]', () => {
    for (const text of ['', 'short', `\ufeff${long('g')}`]) {
      expect(hashedText(Buffer.from(text))).toEqual({ text, hash: plain(text) });
      expect(hashText(text)).toBe(plain(text));
    }
  });

  test('reuse the bytes of the last decoded text once, and encode any other text', () => {
    const bytes = Buffer.from(`\ufeff${long('i')}`);
    const { text } = hashedText(bytes);
    expect(utf8Of(long('j'))).toEqual(Buffer.from(long('j')));
    expect(utf8Of(text)).toBe(bytes);
    expect(utf8Of(text)).not.toBe(bytes);
    expect(utf8Of(text)).toEqual(bytes);
    hashedText(bytes);
    hashedText(Buffer.from(long('k')));
    expect(utf8Of(text)).not.toBe(bytes);
    expect(utf8Of(long('k'))).toEqual(Buffer.from(long('k')));
  });

  test('are right at each moment of a growing text with a temporary end', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }))), (pieces) => {
        const growing = new GrowingHash();
        let text = '';
        for (const [piece, end] of pieces) {
          growing.add(piece);
          text += piece;
          expect(growing.with(end)).toBe(plain(text + end));
          expect(growing.chars).toBe(text.length);
        }
      }),
    );
    expect(() => new GrowingHash().add('\ud83d')).toThrow(expect.objectContaining({ code: 'lone-surrogate' }));
    expect(() => new GrowingHash().with('\ud83d')).toThrow(expect.objectContaining({ code: 'lone-surrogate' }));
  });

  test('refuse a lone surrogate in a long text each time', () => {
    for (let round = 0; round < 2; round++)
      expect(() => hashText(`${long('h')}\ud83d`)).toThrow(expect.objectContaining({ code: 'lone-surrogate' }));
  });

  test.each([0, 1, 2, 3])(
    'of consecutive texts equal the hash of their join, with pairs at any place (%i)',
    (shift) => {
      const many = [`${'-'.repeat(shift)}${'😀ü'.repeat(40_000)}`, '', '\n\n', long('k'), 'end'];
      expect(hashTexts(many)).toBe(plain(many.join('')));
      expect(hashTexts([])).toBe(plain(''));
    },
  );

  test('refuse a lone surrogate in one of several texts, even if the next has the other half', () => {
    for (const texts of [
      ['a', `${'x'.repeat(32_767)}\ud83d`],
      ['\ud83d', '\ude00'],
    ])
      expect(() => hashTexts(texts)).toThrow(expect.objectContaining({ code: 'lone-surrogate' }));
  });

  test('identify the binding, not the object that holds it', () => {
    const open = { type: 'filesystem' as const, filesystemId: filesystemId('f'), path: canonicalPath('/a') };
    const before = sourcedIdentityHash('file', open);
    expect(sourcedIdentityHash('file', filesystemSource(open.filesystemId, open.path))).toBe(before);
    Object.assign(open, { path: '/b' });
    expect(sourcedIdentityHash('file', open)).toBe(
      sourcedIdentityHash('file', filesystemSource(open.filesystemId, canonicalPath('/b'))),
    );
    expect(sourcedIdentityHash('file', open)).not.toBe(before);
  });

  test('identify canonical JSON of their input, and do not exist for refused input', () => {
    const text = fc.oneof(
      fc.string({ unit: 'grapheme' }),
      fc.string({ unit: 'binary' }),
      fc.constantFrom('\ud83d', '\ude00a', '"\\\n\u2028'),
    );
    const hashOrRefusal = (make: () => string): string => {
      try {
        return make();
      } catch (error) {
        return String((error as { readonly code?: unknown }).code);
      }
    };
    fc.assert(
      fc.property(text, text, (id, path) => {
        const source = { type: 'filesystem' as const, filesystemId: id as never, path: path as never };
        expect(hashOrRefusal(() => sourcedIdentityHash('file', source))).toBe(
          hashOrRefusal(() => plain(canonicalJson({ type: 'file', source }))),
        );
        expect(hashOrRefusal(() => assignedIdentityHash('toolcall', id))).toBe(
          hashOrRefusal(() => plain(canonicalJson({ type: 'toolcall', 'xt/id': id }))),
        );
      }),
    );
  });
});
