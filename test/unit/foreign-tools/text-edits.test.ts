import { describe, expect, test } from '@jest/globals';
import { inserted, rangeReplaced, replaced } from '../../../src/foreign-tools/text-edits.js';

const once = (from: string, to: string) => ({ from, to, all: false });

describe('replacements', () => {
  test('apply one after another, each exactly once', () => {
    expect(replaced('a b c', [once('b', 'x'), once('x c', 'y')])).toBe('a y');
  });

  test('give no result if the text is missing or occurs twice', () => {
    expect(replaced('a b a', [once('z', 'x')])).toBeUndefined();
    expect(replaced('a b a', [once('a', 'x')])).toBeUndefined();
    expect(replaced('a b a', [{ from: 'a', to: 'x', all: true }])).toBe('x b x');
  });

  test('treat dollar signs literally', () => {
    expect(replaced('cost', [once('cost', '$& $1')])).toBe('$& $1');
    expect(replaced('cost', [{ from: 'cost', to: '$&', all: true }])).toBe('$&');
  });

  test('keep the line endings of the file', () => {
    expect(replaced('a\r\nb\r\nc\r\n', [once('a\nb', 'x\ny')])).toBe('x\r\ny\r\nc\r\n');
  });

  test('of an empty text fill an empty file only', () => {
    expect(replaced('', [once('', 'new')])).toBe('new');
    expect(replaced('old', [once('', 'new')])).toBeUndefined();
  });
});

describe('lines', () => {
  test('are inserted after a line, before all lines and at the end', () => {
    expect(inserted('1\n2\n', 1, 'x')).toBe('1\nx\n2\n');
    expect(inserted('1\n2\n', 0, 'x\n')).toBe('x\n1\n2\n');
    expect(inserted('1\n2', 2, 'x')).toBe('1\n2\nx');
    expect(inserted('1\n', 5, 'x')).toBeUndefined();
  });

  test('replace a range, also an empty one', () => {
    expect(rangeReplaced('1\n2\n3\n', { first: 2, last: 2, text: 'x\ny' })).toBe('1\nx\ny\n3\n');
    expect(rangeReplaced('1\n2\n3\n', { first: 1, last: 3, text: '' })).toBe('');
    expect(rangeReplaced('1\n2\n3\n', { first: 2, last: 1, text: 'x' })).toBe('1\nx\n2\n3\n');
    expect(rangeReplaced('1\n2', { first: 2, last: 2, text: 'x' })).toBe('1\nx');
    expect(rangeReplaced('1\n', { first: 2, last: 3, text: 'x' })).toBeUndefined();
  });
});
