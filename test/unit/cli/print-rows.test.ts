import { describe, expect, test } from '@jest/globals';
import { coloursFor } from '../../../src/cli/output.js';
import { columns } from '../../../src/cli/print-rows.js';

const plain = coloursFor({ isTerminal: false, env: {} });

describe('rows in columns', () => {
  test('each is as wide as its widest cell, the last one as long as it is', () => {
    const rows = [
      ['a', 'bb', 'c'],
      ['aaaa', 'b', 'cccccc'],
    ];
    expect(columns(['x', 'yyy', 'z'], rows, plain)).toEqual(['x     yyy  z', 'a     bb   c', 'aaaa  b    cccccc']);
  });

  test('no cell makes a column wider than 80, and one far below makes none wider: what is printed grows with what there is', () => {
    const wide = 'w'.repeat(5_000);
    expect(
      columns(
        ['x', 'y'],
        [
          ['a', 'b'],
          [wide, 'b'],
        ],
        plain,
      )[1],
    ).toBe(`${'a'.padEnd(80)}  b`);
    const rows = Array.from({ length: 100_000 }, (_, i) => [i === 50_000 ? wide : 'a', 'b']);
    const lines = columns(['x', 'y'], rows, plain);
    expect([lines.length, lines[1], lines[50_001]]).toEqual([100_001, 'a  b', `${wide}  b`]);
    expect(lines.join('\n').length).toBeLessThan(100_001 * 6 + wide.length);
  });
});
