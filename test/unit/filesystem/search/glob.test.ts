import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import picomatch from 'picomatch';
import { compileGlob } from '../../../../src/filesystem/search/glob.js';
import { cpuMsOf } from '../../../support/cpu-time.js';

describe('globs', () => {
  test.each<[string, readonly string[], readonly string[]]>([
    ['*.ts', ['a.ts', 'src/deep/b.ts', '.hidden.ts'], ['a.tsx', 'ts', 'a.ts/x']],
    ['src/*.ts', ['src/a.ts'], ['src/b/a.ts', 'x/src/a.ts']],
    ['./src/*.ts', ['src/a.ts'], ['a.ts']],
    ['src/**/*.ts', ['src/a.ts', 'src/b/c/a.ts'], ['a.ts', 'srcs/a.ts']],
    ['**/test/**', ['test/a', 'x/test/y/z'], ['tests/a', 'test']],
    ['src/', ['src/a', 'src/b/c'], ['src', 'lib/a']],
    ['**', ['a', 'a/b'], []],
    ['?.txt', ['a.txt', 'é.txt', 'd/\u{1f600}.txt'], ['ab.txt', '.txt']],
    ['[a-c]?[!0-9].md', ['axy.md'], ['dxy.md', 'ax1.md']],
    ['[]x].md', ['].md', 'x.md'], ['y.md']],
    ['*.{ts,tsx}', ['a.ts', 'b/a.tsx'], ['a.js']],
    ['{src,lib/**}/a.ts', ['src/a.ts', 'lib/x/a.ts'], ['a.ts', 'other/a.ts']],
    ['a{,.test}.ts', ['a.ts', 'a.test.ts'], ['ab.ts']],
    ['app/(group)/*.tsx', ['app/(group)/page.tsx'], ['app/group/page.tsx']],
    ['a\\*b\\{.txt', ['a*b{.txt'], ['axb{.txt']],
    ['!a.txt', ['!a.txt'], ['b.txt']],
    ['a+b^$.(x|y)', ['a+b^$.(x|y)'], ['aab^$.x']],
  ])('match exactly the paths that they name: %s', (pattern, matching, others) => {
    const matches = compileGlob(pattern);
    for (const path of matching) expect([path, matches(path)]).toEqual([path, true]);
    for (const path of others) expect([path, matches(path)]).toEqual([path, false]);
  });

  test.each([
    '',
    './',
    '[a',
    'a]{b',
    '{a,b',
    'a}',
    'a\\',
    '/abs/*.ts',
    'x\0',
    '\ud83d',
    '{1..9}',
    '[z-a]',
    '*'.repeat(1001),
  ])('refuse %j with a reason', (pattern) => {
    expect(() => compileGlob(pattern)).toThrow(expect.objectContaining({ name: 'PatternError', code: 'invalid-glob' }));
  });

  test('agree with a well-known library on ordinary patterns', () => {
    const part = fc.constantFrom('a', 'b', '.', '*', '?', '[ab]', '{a,b.b}', 'ab');
    const name = fc.array(part, { minLength: 1, maxLength: 4 }).map((parts) => parts.join('').replace(/\*+/g, '*'));
    const glob = fc.array(fc.oneof({ weight: 3, arbitrary: name }, fc.constant('**')), { minLength: 2, maxLength: 4 });
    const file = fc.array(fc.constantFrom('a', 'b', 'ab', '.a', 'b.b', 'a.b.a'), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(glob, file, (names, path) => {
        // Names of dots alone are not file names. Repeated ** and a final one that may match
        // nothing are a matter of definition.
        fc.pre(
          !names.some((one) => /^[.]+$/.test(one)) && !/\*\*\/\*\*/.test(names.join('/')) && names.at(-1) !== '**',
        );
        const pattern = names.join('/');
        expect([pattern, compileGlob(pattern)(path.join('/'))]).toEqual([
          pattern,
          picomatch(pattern, { dot: true })(path.join('/')),
        ]);
      }),
      { numRuns: 1000 },
    );
  });

  test('match in linear time', () => {
    const matches = compileGlob(`${'*a'.repeat(30)}*b`);
    expect(cpuMsOf(() => expect(matches('a'.repeat(250))).toBe(false))).toBeLessThan(2_000);
  });
});
