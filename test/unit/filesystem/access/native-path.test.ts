import { posix, win32 } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  fromNative,
  fromWindows,
  refusedOnWindows,
  shownOnWindows,
  toNative,
  toWindows,
} from '../../../../src/filesystem/access/native-path.js';
import { canonicalPath } from '../../../../src/objects/ids.js';

const name = fc.stringMatching(/^[A-Za-z0-9_-][A-Za-z0-9 ._-]{0,10}[A-Za-z0-9_-]$/);
const start = fc.oneof(
  fc.constantFrom('C:\\', 'D:\\', 'Z:\\'),
  name.map((server) => `\\\\${server}\\share\\`),
);
const windowsPath = fc.tuple(start, fc.array(name, { maxLength: 5 })).map(([top, names]) => top + names.join('\\'));

describe('a path of Windows', () => {
  test.each([
    ['C:\\Users\\me\\a.ts', '/C:/Users/me/a.ts'],
    ['c:/Users/me', '/C:/Users/me'],
    ['C:\\', '/C:/'],
    ['c:', '/C:'],
    ['/c:/Users', '/C:/Users'],
    ['\\\\server\\share\\a', '/UNC/server/share/a'],
    ['//server/share', '/UNC/server/share'],
    ['\\\\?\\C:\\long', '/C:/long'],
    ['\\\\?\\UNC\\server\\share', '/UNC/server/share'],
    ['src\\a.ts', 'src/a.ts'],
    ['..\\a.ts', '../a.ts'],
    ['/workspace/a.ts', '/workspace/a.ts'],
  ])('%s has the canonical form %s', (own, canonical) => {
    expect(fromWindows(own)).toBe(canonical);
    expect(fromWindows(canonical)).toBe(canonical);
  });

  test('comes back from its canonical form, in which POSIX finds the same folder and name', () => {
    fc.assert(
      fc.property(windowsPath, (path) => {
        const canonical = canonicalPath(fromWindows(path));
        const own = win32.normalize(path);
        expect(win32.relative(own, toWindows(canonical))).toBe('');
        expect(toWindows(toWindows(canonical))).toBe(toWindows(canonical));
        expect(canonicalPath(fromWindows(shownOnWindows(canonical)))).toBe(canonical);
        if (win32.basename(own) !== '') expect(posix.basename(canonical)).toBe(win32.basename(own));
      }),
    );
  });

  test('is shown as programs of Windows accept it', () => {
    expect(shownOnWindows('/C:/Users/me/a.ts')).toBe('C:/Users/me/a.ts');
    expect(shownOnWindows('/C:')).toBe('C:/');
    expect(shownOnWindows('/UNC/server/share/a')).toBe('//server/share/a');
    expect(shownOnWindows('/workspace/a')).toBe('/workspace/a');
  });

  test.each([
    ['/C:/a.txt:stream', 'no file name'],
    ['/C:/a.txt::$DATA', 'no file name'],
    ['/C:/p/C:foo', 'no file name'],
    ['/C:/a*b', 'no file name'],
    ['/C:/a\tb', 'no file name'],
    ['/C:/a.txt.', 'drops the end'],
    ['/C:/dir /a.txt', 'drops the end'],
    ['/C:/CON', 'device'],
    ['/C:/p/nul.txt', 'device'],
    ['/C:/p/Com1.log', 'device'],
    ['/C:/p/lpt¹', 'device'],
    ['/UNC/?/pipe/x', 'no file name'],
  ])('%s is refused', (path, why) => {
    expect(refusedOnWindows(path)).toContain(why);
  });

  test.each([
    '/C:',
    '/C:/a.txt',
    '/C:/console/nullable.txt',
    '/C:/com10/.git',
    '/UNC/server/share/ä b.c',
    '/workspace/a',
  ])('%s is accepted', (path) => {
    expect(refusedOnWindows(path)).toBeUndefined();
  });
});

test('a path of this system keeps every character', () => {
  fc.assert(
    fc.property(fc.string(), (path) => {
      expect([fromNative(path), toNative(path)]).toEqual([path, path]);
    }),
  );
});
