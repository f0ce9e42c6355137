import { describe, expect, test } from '@jest/globals';
import { noFilesText, noMatchesText } from '../../../src/tools/empty-search.js';

describe('a search without results', () => {
  test.each([
    ['*.zig', 'No files below . match *.zig.'],
    ['!*.ts', 'No files below . match !*.ts. A glob cannot exclude files: '],
    ['*.ts,*.js', 'No files below . match *.ts,*.js. A glob is one pattern: write alternatives as {*.ts,*.js}.'],
    ['*.ts *.js', 'write alternatives as {*.ts,*.js}.'],
    ['*.ts|*.js', 'write alternatives as {*.ts,*.js}.'],
    ['app/[id]/*.tsx', '[id] stands for one of its characters: write \\[id\\] for the brackets themselves.'],
  ])('explains the glob %s', (glob, text) => {
    expect(noFilesText(glob, '.')).toContain(text);
  });

  test.each(['*.{ts,js}', 'a\\,b', '\\[id\\].ts'])('adds nothing for %s', (glob) => {
    expect(noFilesText(glob, 'src')).toBe(`No files below src match ${glob}.`);
  });

  test('explains a bar with a backslash in a regular expression', () => {
    expect(noMatchesText('a\\|b', false)).toBe(
      'No matches found. "\\|" stands for the character "|" itself here: write a|b for alternatives.',
    );
  });

  test.each([
    ['a|b', false],
    ['main\\(', false],
    ['a\\\\|b', false],
    ['a\\|b', true],
  ])('adds nothing for the pattern %s, literal %s', (pattern, isLiteral) => {
    expect(noMatchesText(pattern, isLiteral)).toBe('No matches found.');
  });
});
