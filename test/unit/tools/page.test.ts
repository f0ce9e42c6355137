import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { type Page, PageReader, pageOf, pageOfPieces } from '../../../src/tools/page.js';
import { ToolError } from '../../../src/tools/tool.js';

const WIDE = { chars: 10_000, lines: 100 };
const FIRST = { offset: 1, column: 1 };

/** Reads a text page by page, as the hints say. */
function allPages(text: string, limits: { readonly chars: number; readonly lines: number }): readonly Page[] {
  const pages: Page[] = [];
  let start: { offset: number; column: number } | undefined = FIRST;
  while (start !== undefined) {
    const page: Page = pageOf(text, start, limits);
    pages.push(page);
    start = page.next === undefined ? undefined : { offset: page.next.offset, column: page.next.column ?? 1 };
    if (pages.length > 10_000) throw new Error('the pages never end');
  }
  return pages;
}

const texts = fc
  .array(fc.constantFrom('a', 'bc', '\n', '\n', '\r\n', '😀', 'ü', ' ', 'long word '), { maxLength: 60 })
  .map((parts) => parts.join(''));

describe('pages of a text', () => {
  test('join to the text, for any content and any size', () => {
    fc.assert(
      fc.property(texts, fc.integer({ min: 2, max: 20 }), fc.integer({ min: 1, max: 5 }), (text, chars, lines) => {
        const pages = allPages(text, { chars, lines });
        expect(pages.map((page) => page.text).join('')).toBe(text);
        for (const page of pages) {
          expect(page.text.length).toBeLessThanOrEqual(chars);
          expect(page.text.isWellFormed()).toBe(true);
        }
      }),
    );
  });

  test('do not depend on the pieces in which a text arrives', () => {
    fc.assert(
      fc.property(
        texts,
        fc.array(fc.nat(8), { minLength: 1 }),
        fc.integer({ min: 1, max: 6 }),
        (text, cuts, offset) => {
          const reader = new PageReader({ offset, column: 1 }, { chars: 12, lines: 3 });
          let at = 0;
          for (const cut of cuts) {
            reader.push(text.slice(at, at + cut));
            at += cut;
          }
          reader.push(text.slice(at));
          expect(reader.end()).toEqual(pageOf(text, { offset, column: 1 }, { chars: 12, lines: 3 }));
        },
      ),
    );
  });

  test('begin no further line after a final line end', () => {
    expect(pageOf('a\nb\n', FIRST, WIDE)).toMatchObject({ totalLines: 2, lastLine: 2, whole: true });
    expect(pageOf('a\nb', FIRST, WIDE)).toMatchObject({ totalLines: 2, lastLine: 2, whole: true });
    expect(pageOf('', FIRST, WIDE)).toMatchObject({ totalLines: 0, totalChars: 0, whole: true });
    expect(pageOf('\n', FIRST, WIDE)).toMatchObject({ totalLines: 1, text: '\n' });
  });

  test('are cut at a limit and name the place to continue', () => {
    expect(pageOf('a\nb\nc\n', { ...FIRST, limit: 2 }, WIDE)).toMatchObject({
      text: 'a\nb\n',
      next: { offset: 3 },
      whole: false,
    });
    expect(pageOf('a\nb\nc\n', { offset: 2, column: 1 }, WIDE)).toMatchObject({ text: 'b\nc\n', whole: false });
    expect(pageOf('a\nb\nc\n', { ...FIRST, limit: 3 }, WIDE).whole).toBe(true);
  });

  test('continue an overlong line by its column', () => {
    const page = pageOf('abcdefghij\nk\n', FIRST, { chars: 4, lines: 10 });
    expect(page).toMatchObject({ text: 'abcd', lastLine: 1, next: { offset: 1, column: 5 } });
    expect(pageOf('abcdefghij\nk\n', { offset: 1, column: 5 }, { chars: 100, lines: 10 }).text).toBe('efghij\nk\n');
  });

  test('begin before the character for a column inside a surrogate pair', () => {
    expect(pageOf('a😀bc\n', { offset: 1, column: 3 }, WIDE)).toMatchObject({ text: '😀bc\n', whole: false });
    expect(pageOf('x\n😀', { offset: 2, column: 2 }, WIDE).text).toBe('😀');
    expect(pageOf('a😀bcdef\n', { offset: 1, column: 3 }, { chars: 3, lines: 1 })).toMatchObject({
      text: '😀b',
      next: { offset: 1, column: 5 },
    });
    const reader = new PageReader({ offset: 1, column: 6 }, WIDE);
    for (const piece of ['abc', 'd😀', '😀e\n', 'f']) reader.push(piece);
    expect(reader.end().text).toBe('😀😀e\nf');
  });

  test('return an error with the range for a start past the end', () => {
    const past = (): Page => pageOfPieces(['a\nb\n'], { start: { offset: 9, column: 1 }, limits: WIDE, name: 'x.txt' });
    expect(past).toThrow(ToolError);
    expect(past).toThrow('offset 9 is past the end of x.txt, which has 2 lines');
    expect(() => pageOfPieces(['ab\n'], { start: { offset: 1, column: 9 }, limits: WIDE, name: 'x.txt' })).toThrow(
      'column 9 is past the end of line 1',
    );
    expect(pageOfPieces([''], { start: FIRST, limits: WIDE, name: 'x.txt' }).text).toBe('');
  });
});
