import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { renderedValue } from '../../../src/assembly/rendered-value.js';
import { anyText } from '../../support/any-text.js';

describe('values in lines (decision E3)', () => {
  test.each([
    ['/src/a.ts', '/src/a.ts'],
    ['/src/ä-日本.ts', '/src/ä-日本.ts'],
    ['C:\\temp\\x', 'C:\\temp\\x'],
    ['a=b[unread]', 'a=b[unread]'],
    ['\u{1f600}', '\u{1f600}'],
    ['', '""'],
    ['a b', '"a b"'],
    ['a"b', '"a\\"b"'],
    ["it's", '"it\'s"'],
    ['a\\b c', '"a\\\\b c"'],
    ['a\nid=x type=file', '"a\\nid=x type=file"'],
    ['a\tb', '"a\\tb"'],
    ['a\u00a0b', '"a\u00a0b"'],
    ['a\u2028b', '"a\\u2028b"'],
    ['a\u2029b', '"a\\u2029b"'],
    ['a\u0085b', '"a\\u0085b"'],
    ['a\u007fb', '"a\\u007fb"'],
    ['a\u001b[31m', '"a\\u001b[31m"'],
    ['gpj.\u202eexe', '"gpj.\\u202eexe"'],
    ['a\u2066b', '"a\\u2066b"'],
    ['a\u200bb', '"a\\u200bb"'],
    ['a\ufeff', '"a\\ufeff"'],
    ['a\u{e0041}', '"a\\udb40\\udc41"'],
  ])('renders %j as %s', (value, rendered) => {
    expect(renderedValue(value)).toBe(rendered);
  });

  test('renders a value as one word or one JSON string on one line that reads back as the value', () => {
    fc.assert(
      fc.property(
        fc.string({
          unit: fc.oneof(anyText({ minLength: 1, maxLength: 1 }), fc.constantFrom(' ', '\n', '"', '\\', 'a')),
        }),
        (value) => {
          const rendered = renderedValue(value);
          expect(rendered).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
          if (rendered.startsWith('"')) expect(JSON.parse(rendered)).toBe(value);
          else expect([rendered, /\s/.test(rendered)]).toEqual([value, false]);
        },
      ),
      { numRuns: 500 },
    );
  });
});
