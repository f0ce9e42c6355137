import { execFileSync } from 'node:child_process';
import { afterEach, describe, expect, test } from '@jest/globals';
import { maskedExport, nameDataFolder } from '../../../src/page/command.js';

/** Returns the words and the input that a shell passes to the command. */
const ran = (command: string): readonly string[] =>
  execFileSync('sh', ['-c', `palimpsest() { printf '%s\\n' "$@"; echo --; cat; }; ${command}`], {
    encoding: 'utf8',
    input: '',
  }).split('\n');

describe('the command that exports without secrets', () => {
  afterEach(() => nameDataFolder(undefined));

  test('carries each named text and pattern through a shell, unchanged', () => {
    nameDataFolder('/tmp/my data');
    const rules = ["it's $HOME", '-n', '/a\\d+"`x`/', 'back\\nslash'];
    expect(ran(maskedExport('fix-cart', rules.join('\n')))).toEqual([
      ...['export', 'fix-cart', '--html', 'fix-cart.html', '--redact', '/dev/stdin', '--data', '/tmp/my data', '--'],
      ...rules,
      '',
    ]);
  });

  test('names no file of rules if no text was named', () => {
    expect(maskedExport('fix-cart', ' \n')).toBe('palimpsest export fix-cart --html fix-cart.html --redact');
  });
});
