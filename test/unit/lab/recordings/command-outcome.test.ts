import { describe, expect, test } from '@jest/globals';
import { commandFailed } from '../../../../src/lab/recordings/entries/command-outcome.js';

const failed = (script: string, code: number | undefined, output = ''): boolean =>
  commandFailed(script, { code, output });

describe('the outcome of a command', () => {
  test('a search that finds nothing is no failure', () => {
    expect(failed('rg -n foo src', 1)).toBe(false);
    expect(failed('cd src && cat a.ts | grep foo', 1)).toBe(false);
    expect(failed('git grep foo', 1)).toBe(false);
    expect(failed('sed -n 1,3p a.ts; rg foo', 1, 'one\ntwo\n')).toBe(false);
  });

  test('a search with a complaint, or with another exit code, is a failure', () => {
    expect(failed('rg foo internal/*_test.go', 1, 'zsh:1: no matches found: internal/*_test.go\n')).toBe(true);
    expect(failed('rg foo src', 2, 'rg: src: No such file or directory (os error 2)\n')).toBe(true);
    expect(failed('grep foo nothing.txt', 1, 'grep: nothing.txt: No such file or directory\n')).toBe(true);
    expect(failed('git diff --check', 1)).toBe(true);
    expect(failed('rg foo src && npm test', 1)).toBe(true);
  });

  test('the output of a build or test decides behind a pipe and while it still runs', () => {
    const broken = '# shop\nshop/cart.go:17:6: undefined: errors\n';
    expect(failed('go test ./...', undefined, broken)).toBe(true);
    expect(failed('cd shop && go test ./... 2>&1 | tail -20', 0, broken)).toBe(true);
    expect(failed('npm test || true', 0, 'Tests:       2 failed, 30 passed, 32 total\n')).toBe(true);
    expect(failed('go test ./... | tail -1', 0, 'ok  \tshop\t0.3s\n')).toBe(false);
    expect(failed('go test ./...', undefined, '')).toBe(false);
  });

  test('the exit code of a build or test alone is believed, and no other output is searched', () => {
    expect(failed('cd shop && go vet ./...', 0, 'FAIL is a word of this log\n')).toBe(false);
    expect(failed('rg --column "go test" . | head', 0, 'shop/cart.go:17:6: go test\n')).toBe(false);
    expect(failed('make lint', 2)).toBe(true);
    expect(failed("echo 'unclosed", 0, 'FAIL')).toBe(false);
  });
});
