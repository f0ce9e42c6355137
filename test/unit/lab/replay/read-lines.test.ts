import { describe, expect, test } from '@jest/globals';
import { ReadLines } from '../../../../src/lab/replay/files/read-lines.js';
import type { CanonicalPath } from '../../../../src/objects/ids.js';

const PATH = '/p/a.ts' as CanonicalPath;
const lines = (from: number, ...all: readonly string[]) => ({ startLine: from, text: `${all.join('\n')}\n` });

describe('the lines of repeated reads', () => {
  test('differ where a later read shows another text, also behind a command of unknown effect', () => {
    const reads = new ReadLines();
    expect(reads.read(PATH, lines(1, 'one', 'two', 'three'))).toBeUndefined();
    expect(reads.read(PATH, lines(3, 'three', 'four'))).toBeUndefined();
    expect(reads.read(PATH, lines(2, 'TWO', 'three', 'FOUR'))).toEqual({ from: 2, to: 4, isDoubted: false });
    expect(reads.read(PATH, lines(2, 'TWO', 'three', 'FOUR'))).toBeUndefined();
    reads.doubt();
    expect(reads.read(PATH, lines(2, 'two'))).toEqual({ from: 2, to: 2, isDoubted: true });
  });

  test('do not differ behind a recorded change, but from the text that it left', () => {
    const reads = new ReadLines();
    reads.read(PATH, lines(1, 'one', 'two'));
    reads.changed(PATH, undefined);
    expect(reads.read(PATH, lines(1, 'ONE'))).toBeUndefined();
    reads.changed(PATH, 'one\ntwo\n');
    expect(reads.read(PATH, lines(2, 'two'))).toBeUndefined();
    expect(reads.read(PATH, lines(2, 'zwei'))).toEqual({ from: 2, to: 2, isDoubted: false });
  });

  test('do not differ by blank lines and spaces that a tool cut from the ends, nor by long lines', () => {
    const reads = new ReadLines();
    reads.read(PATH, lines(1, '', '', 'three', 'four  ', 'x'.repeat(3_000)));
    expect(reads.read(PATH, lines(1, 'three', 'four'))).toBeUndefined();
    expect(reads.read(PATH, lines(5, 'x'.repeat(2_000)))).toBeUndefined();
    expect(reads.read(PATH, lines(1, 'drei', 'four'))).toEqual({ from: 1, to: 2, isDoubted: false });
  });
});
