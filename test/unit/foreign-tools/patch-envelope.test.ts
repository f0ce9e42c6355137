import { describe, expect, test } from '@jest/globals';
import { parsePatch, patched } from '../../../src/foreign-tools/patch-envelope.js';

const envelope = (...lines: readonly string[]): string => ['*** Begin Patch', ...lines, '*** End Patch'].join('\n');

function applied(text: string, ...lines: readonly string[]): string | undefined {
  const [change] = parsePatch(envelope('*** Update File: a', ...lines)) ?? [];
  if (change?.kind !== 'update') throw new Error('no update');
  return patched(text, change.hunks);
}

describe('a patch envelope', () => {
  test('names the added, deleted, updated and moved files', () => {
    const changes = parsePatch(
      envelope(
        '*** Add File: n.ts',
        '+one',
        '+',
        '*** Delete File: d.ts',
        '*** Update File: u.ts',
        '*** Move to: m.ts',
        '@@',
        '-a',
        '+b',
      ),
    );
    expect(changes).toEqual([
      { kind: 'add', path: 'n.ts', text: 'one\n\n' },
      { kind: 'delete', path: 'd.ts' },
      {
        kind: 'update',
        path: 'u.ts',
        moveTo: 'm.ts',
        hunks: [{ contexts: [], before: ['a'], after: ['b'], atEnd: false }],
      },
    ]);
  });

  test('is ignored if it is another text or malformed', () => {
    expect(parsePatch('--- a\n+++ b')).toBeUndefined();
    expect(parsePatch(envelope('*** Update File: u.ts', '@@', '?what'))).toBeUndefined();
    expect(parsePatch(envelope('nonsense'))).toBeUndefined();
  });

  test('is applied hunk by hunk', () => {
    expect(applied('a\nb\nc\nd\n', '@@', ' a', '-b', '+B', '@@', ' c', '-d', '+D', '+E')).toBe('a\nB\nc\nD\nE\n');
  });

  test('is searched below the context that a hunk names', () => {
    expect(applied('f():\n x\ng():\n x\n', '@@ g():', '- x', '+ y')).toBe('f():\n x\ng():\n y\n');
  });

  test('matches lines that differ in trailing white space, as the tool does', () => {
    expect(applied('a  \nb\n', '@@', ' a', '-b', '+c')).toBe('a\nc\n');
  });

  test('appends if a hunk only adds', () => {
    expect(applied('a\n', '@@', '+b')).toBe('a\nb\n');
  });

  test('has no result if a hunk is not found', () => {
    expect(applied('a\n', '@@', '-z', '+y')).toBeUndefined();
    expect(applied('a\n', '@@ missing()', '-a', '+y')).toBeUndefined();
  });
});
