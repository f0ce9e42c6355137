import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { RE2JS } from 're2js';
import { HistoryError } from '../../../src/history/rebuild/history-error.js';
import { linesOf } from '../../../src/history/search/found-lines.js';
import { requiredTexts } from '../../../src/history/search/required-texts.js';
import { pathFilter, textPattern } from '../../../src/history/search/text-pattern.js';

const matches = (pattern: string, text: string): readonly string[] =>
  [...textPattern(pattern).ranges(text)].map(({ at, end }) => text.slice(at, end));

describe('a search pattern', () => {
  test('is a text in any case of letters, or an expression between slashes', () => {
    expect(matches('one', 'One two ONE')).toEqual(['One', 'ONE']);
    expect(matches('One', 'One two ONE')).toEqual(['One']);
    expect(matches('a/b/c', 'x a/b/c')).toEqual(['a/b/c']);
    expect(matches('/t\\w+$/', 'two tea\nthree')).toEqual(['tea', 'three']);
    expect(matches('/ONE.two/is', 'one\ntwo')).toEqual(['one\ntwo']);
  });

  test.each(['', '  ', '/a*/', '/(?=x)y/', '/(a)\\1/', '/(/', '/((a{1,100}){1,100}){1,100}/', 'x'.repeat(1_001)])(
    'is refused if it matches everything or does not run in linear time: %j',
    (pattern) => {
      expect(() => textPattern(pattern)).toThrow(HistoryError);
      expect(() => textPattern(pattern)).toThrow(/is refused: /);
    },
  );

  test('runs an expression to its end that takes exponential time in other engines', () => {
    expect(matches('/(a+)+b/', `${'a'.repeat(20_000)}!`)).toEqual([]);
  });

  test('knows only texts that each match contains, and finds all that its engine finds', () => {
    expect(requiredTexts('const (\\w+) = require\\(x\\)')).toEqual(['const ', ' = require(x)']);
    expect(requiredTexts('ab?c+d{0,2}e')).toEqual(['a', 'e']);
    expect(requiredTexts('[[:alpha:]]x|y')).toEqual([]);
    expect(requiredTexts('\\x41bc d')).toEqual([' d']);
    const piece = fc.constantFrom(
      'ab',
      'c',
      '\\.',
      '[a-c]',
      '[^]x]',
      '(ab|c)',
      'b?',
      'c*',
      '(?:a)',
      '\\w',
      '.',
      'A',
      '|',
      '🐘',
      'a🐘?',
      '^',
      '$',
      '\\b',
      '\\B',
      '\\s',
      '\\W',
      '\\n',
      '[a\\n]',
      '[^a]',
      '[\\s]',
      '(?s)',
      '(?s:.)',
      '\\S',
      '{2}',
    );
    const source = fc.array(piece, { minLength: 1, maxLength: 6 }).map((pieces) => pieces.join(''));
    const text = fc.string({
      unit: fc.constantFrom('a', 'b', 'c', '.', 'A', 'x', ']', '🐘', '\n', ' '),
      maxLength: 40,
    });
    fc.assert(
      fc.property(source, text, (expression, searched) => {
        let found: readonly string[];
        try {
          found = matches(`/${expression}/`, searched);
        } catch {
          return;
        }
        const matcher = RE2JS.compile(expression, RE2JS.MULTILINE).matcher(searched);
        const all: string[] = [];
        while (matcher.find()) all.push(searched.slice(matcher.start(), matcher.end()));
        expect(found).toEqual(all);
        // Half a letter of two units is no text.
        const required = requiredTexts(expression).filter((part) => part.isWellFormed());
        for (const one of all) for (const part of required) expect(one).toContain(part);
      }),
      { numRuns: 2_000 },
    );
  });

  test('shows the lines around each match', () => {
    expect(linesOf('a\nb\nc x\nd\n', textPattern('x').ranges('a\nb\nc x\nd\n'), 2)).toEqual({
      count: 1,
      lines: [{ line: 3, excerpt: 'c x', marks: [{ at: 2, end: 3 }], before: ['a', 'b'], after: ['d'] }],
    });
  });
});

describe('a path of a search', () => {
  test.each([
    ['src/a.ts', '/home/u/p/src/a.ts', true],
    ['a.ts', '/home/u/p/src/a.ts', true],
    ['src', '/home/u/p/src/a.ts', true],
    ['/home/u/p', '/home/u/p/src/a.ts', true],
    ['*.ts', '/home/u/p/src/a.ts', true],
    ['src/*.ts', '/home/u/p/src/a.ts', true],
    ['rc/a.ts', '/home/u/p/src/a.ts', false],
    ['/home/u/p/s', '/home/u/p/src/a.ts', false],
    ['*.js', '/home/u/p/src/a.ts', false],
  ])('%s accepts %s: %s', (wanted, path, isAccepted) => {
    expect(pathFilter(wanted)(path)).toBe(isAccepted);
  });
});
