import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { escapedJson, escapedLine, escapedText, firstLine } from '../../../src/cli/escape-text.js';
import { anyText } from '../../support/any-text.js';

const ACTIVE = /(?![\n\t])\p{Cc}|\p{Bidi_Control}/u;

describe('text on a terminal', () => {
  test.each([
    ['\u001b[31mred\u001b[0m', '\\x1b[31mred\\x1b[0m'],
    ['a\rb', 'a\\rb'],
    ['\u009b5m', '\\x9b5m'],
    ['\u202eabc', '\\u202eabc'],
    ['line\n\ttab', 'line\n\ttab'],
    ['日本 👩‍👩‍👧 é', '日本 👩‍👩‍👧 é'],
    ['\ud83d', '\ufffd'],
  ])('%j stands as %j', (text, shown) => {
    expect(escapedText(text)).toBe(shown);
  });

  test('whatever was recorded, nothing that a terminal acts on is left', () => {
    const text = anyText({ maxLength: 60 });
    fc.assert(
      fc.property(text, (recorded) => {
        expect(escapedText(recorded)).not.toMatch(ACTIVE);
        expect(escapedLine(recorded)).not.toMatch(/[\n\t]/);
        expect(escapedJson({ recorded })).not.toMatch(/\p{Cc}|\p{Bidi_Control}/u);
        expect(JSON.parse(escapedJson({ recorded }))).toEqual({ recorded });
      }),
    );
  });

  test('a first line says that there is more', () => {
    expect(firstLine('one\ntwo', 10)).toBe('one …');
    expect(firstLine('\n one', 10)).toBe('one');
    expect(firstLine('abcdef', 3)).toBe('abc …');
  });
});
