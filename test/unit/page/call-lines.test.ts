import { expect, test } from '@jest/globals';
import { callLines } from '../../../src/page/call-lines.js';

test('shows a call with one argument a line, and with the line breaks of its texts', () => {
  const text = 'edit {"all":false,"new_string":"one\\n\\ttwo","path":"a.ts"}';
  expect(callLines(text)).toBe('edit\nall: false\nnew_string: \none\n\ttwo\npath: a.ts');
});

test.each(['', 'user: {no call}', 'edit {"cut":"at the e', 'a result'])('leaves %j as it is', (text) => {
  expect(callLines(text)).toBeUndefined();
});
