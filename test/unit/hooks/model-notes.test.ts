import { describe, expect, test } from '@jest/globals';
import { changedRanges, staleNote } from '../../../src/hooks/model-notes.js';

const lines = (count: number): string[] => Array.from({ length: count }, (_, at) => `const line${at + 1} = ${at + 1};`);
const text = (all: readonly string[]): string => `${all.join('\n')}\n`;

function changed(at: readonly number[], count = 60): { readonly before: string; readonly after: string } {
  const before = lines(count);
  return { before: text(before), after: text(before.map((line, i) => (at.includes(i + 1) ? `${line} // now` : line))) };
}

describe('the ranges of changed lines', () => {
  test.each([
    [[40, 41, 42, 43, 44], 'lines 40-44'],
    [[7], 'line 7'],
    [[3, 20, 21], 'lines 3, 20-21'],
    [[1, 5, 10, 15, 20, 25], 'lines 1, 5, 10, 15, 20 and more'],
  ])('%j are %s', (at, words) => {
    const { before, after } = changed(at);
    expect(changedRanges(before, after)).toBe(words);
  });

  test('are undefined if lines were only removed', () => {
    expect(changedRanges('a\nb\nc\n', 'a\nc\n')).toBeUndefined();
  });
});

describe('the note on a stale file', () => {
  const numberOf = (id: string): number | undefined => (id === 'c12' ? 12 : undefined);

  test('names the call that read the file, and the changed lines', () => {
    const file = { name: 'src/cart.ts', ...changed([40, 41, 42, 43, 44]), seenIn: { tool: 'Read', id: 'c12' } };
    const note = staleNote([file], numberOf);
    expect(note).toMatch(/^\[Palimpsest\] src\/cart\.ts changed since you read it in call 12 \(lines 40-44\)\./);
    expect(note).toContain('+const line40 = 40; // now');
    expect(note).toMatch(
      /Nothing was done\. If your change still fits, make it again; otherwise read the file first\.$/,
    );
  });

  test('leaves out the number, the verb or the call if it is unknown', () => {
    const file = { name: 'a.ts', ...changed([1]) };
    const since = (seenIn: { readonly tool: string; readonly id: string | undefined } | undefined): string =>
      staleNote([{ ...file, seenIn }], numberOf);
    expect(since({ tool: 'Edit', id: 'c12' })).toContain('a.ts changed since you changed it in call 12 (line 1).');
    expect(since({ tool: 'Read', id: 'other' })).toContain('a.ts changed since you read it (line 1).');
    expect(since({ tool: 'read_file', id: undefined })).toContain('a.ts changed since you read it (line 1).');
    expect(since(undefined)).toContain('a.ts changed since you last saw it (line 1).');
  });

  test('leaves out a long diff', () => {
    const at = lines(300).map((_, i) => i + 1);
    const note = staleNote([{ name: 'a.ts', ...changed(at, 300), seenIn: undefined }], numberOf);
    expect(note.length).toBeLessThan(200);
    expect(note).toContain('a.ts changed since you last saw it (lines 1-300).');
  });
});
