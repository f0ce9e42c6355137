import { describe, expect, test } from '@jest/globals';
import { isNamedBy, shellChanges } from '../../../../src/harness/tool-output/shell-changes.js';

const of = (command: unknown) => shellChanges({ command });

describe('the changes that a script shows', () => {
  test('name the files that it writes, below the folder that it went into', () => {
    expect(of("cd src && sed -i 's/a.*/b/' a.ts && mv b.ts ../c.ts").written).toEqual(['src/a.ts', 'src/b.ts', 'c.ts']);
    expect(of('cat a.ts; npm test').written).toEqual([]);
    const patch = '*** Begin Patch\n*** Update File: a.ts\n*** Move to: b.ts\n@@\n-x\n+y\n*** End Patch';
    expect(of(['apply_patch', patch]).written).toEqual(['a.ts', 'b.ts']);
    expect(of(['bash', '-lc', `apply_patch <<'EOF'\n${patch}\nEOF`]).written).toEqual(['a.ts', 'b.ts']);
  });

  test.each([
    ['git stash', [{ command: 'git stash', paths: undefined }]],
    ['git -C /p stash pop -q', [{ command: 'git stash pop', paths: undefined }]],
    ['git checkout -- a.ts src', [{ command: 'git checkout', paths: ['a.ts', 'src'] }]],
    ['git restore a.ts && git status', [{ command: 'git restore', paths: ['a.ts'] }]],
    ['git reset --hard | cat', [{ command: 'git reset', paths: undefined }]],
    ['git checkout -- *.ts', [{ command: 'git checkout', paths: undefined }]],
    ['git stash list; git stash drop; git log; echo git stash', []],
  ])('name the commands that may put files back: %s', (script, expected) => {
    expect(of(script).putsBack).toEqual(expected);
  });

  test('concern a file by the end of its path, or a folder above it', () => {
    expect(isNamedBy('/p/src/a.ts', 'src/a.ts')).toBe(true);
    expect(isNamedBy('/p/src/a.ts', './src')).toBe(true);
    expect(isNamedBy('/p/src/a.ts', '.')).toBe(true);
    expect(isNamedBy('/p/src/ba.ts', 'a.ts')).toBe(false);
    expect(isNamedBy('/p/src/a.ts', 'lib/a.ts')).toBe(false);
  });
});
