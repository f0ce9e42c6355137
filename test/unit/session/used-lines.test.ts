import { describe, expect, test } from '@jest/globals';
import { textsIn, usableLines } from '../../../src/session/used-lines.js';

const LINE = 'const total = price * count;';

describe('usable lines', () => {
  test.each([
    ['an indented line', `    ${LINE}  `],
    ['a numbered line of a read', `  12→  ${LINE}`],
    ['a line of cat -n', `12\t${LINE}`],
    ['a hit of a search', `src/a.ts:12: ${LINE}`],
    ['a line next to a hit', `src/a.ts:12-${LINE}`],
    ['a removed line of a patch', `-${LINE}`],
    ['an added line of a patch', `+ ${LINE}`],
    ['a line that a user said', `user: ${LINE}`],
  ])('take the decoration off %s', (_name, shown) => {
    expect([...usableLines(shown)]).toEqual([LINE]);
  });

  test('are distinct, and leave out lines that are short with or without decoration', () => {
    expect([...usableLines(`${LINE}\nreturn true;\n12→${LINE}\nsrc/some-long-name.ts:12: }`)]).toEqual([LINE]);
  });

  test('come from the texts at any depth of arguments', () => {
    expect(textsIn({ path: 'a', edits: [{ old: 'b', count: 2, all: null }] })).toEqual(['a', 'b']);
  });
});
