import { beforeEach, describe, expect, test } from '@jest/globals';
import type { FileAct } from '../../../../src/harness/tool-output/file-act.js';
import { recordedPath } from '../../../../src/lab/replay/call-effects.js';
import { applyActs, type Evidence } from '../../../../src/lab/replay/files/apply-acts.js';
import { FileTree, UndoTexts } from '../../../../src/lab/replay/files/file-tree.js';

const resolve = (name: string) => recordedPath('/p', name);
const NO_EVIDENCE: Evidence = { files: [], listed: [], reading: false };
const path = (name: string) => {
  const found = resolve(name);
  if (found === undefined) throw new Error(name);
  return found;
};

let tree: FileTree;
let undo: UndoTexts;
beforeEach(() => {
  tree = new FileTree();
  undo = new UndoTexts();
});
const apply = (acts: readonly FileAct[], evidence: Partial<Evidence> = {}) =>
  applyActs(acts, { ...NO_EVIDENCE, ...evidence }, { tree, resolve, undo });
const replace = (from: string, to: string): FileAct => ({
  kind: 'replace',
  path: 'a',
  replacements: [{ from, to, all: false }],
});

describe('a successful call', () => {
  test('edits a known text', () => {
    tree.setWhole(path('a'), 'x = 1\n');
    expect(apply([replace('1', '2')])).toEqual([{ path: '/p/a', how: 'written' }]);
    expect(tree.text(path('a'))).toBe('x = 2\n');
  });

  test('substitutes a text in each line, once or wherever it is', () => {
    tree.setWhole(path('a'), 'x x\n$& x');
    apply([{ kind: 'substitute', path: 'a', from: 'x', to: '$&', all: false }]);
    expect(tree.text(path('a'))).toBe('$& x\n$& $&');
    apply([{ kind: 'substitute', path: 'a', from: '$&', to: '', all: true }]);
    expect(tree.text(path('a'))).toBe(' x\n ');
  });

  test('keeps a file unknown that was unknown or does not fit the edit', () => {
    apply([replace('1', '2')]);
    expect(tree.get(path('a'))).toEqual({ state: 'stale' });
    tree.setWhole(path('a'), 'other');
    apply([replace('1', '2')]);
    expect(tree.get(path('a'))).toEqual({ state: 'stale' });
  });

  test('keeps a text uncertain that was uncertain', () => {
    tree.setWhole(path('a'), '1');
    tree.doubtAll();
    apply([replace('1', '2')]);
    expect([tree.text(path('a')), tree.get(path('a'))]).toEqual([
      undefined,
      { state: 'whole', text: '2', sure: false },
    ]);
  });

  test('can be undone as often as it was done', () => {
    tree.setWhole(path('a'), '1');
    apply([replace('1', '2')]);
    apply([replace('2', '3')]);
    apply([{ kind: 'undo', path: 'a' }]);
    expect(tree.text(path('a'))).toBe('2');
    apply([{ kind: 'undo', path: 'a' }]);
    expect(tree.text(path('a'))).toBe('1');
    apply([{ kind: 'undo', path: 'a' }]);
    expect(tree.text(path('a'))).toBeUndefined();
  });

  test('is checked against the file that the recording shows before and after it', () => {
    const files = [
      { path: 'a', moment: 'before' as const, text: 'one\n', whole: true },
      { path: 'a', moment: 'after' as const, text: 'two\n', whole: true },
    ];
    expect(apply([replace('one', 'something else')], { files })).toEqual([{ path: '/p/a', how: 'written' }]);
    expect(tree.text(path('a'))).toBe('two\n');
  });

  test('is not followed if its result changed in between', () => {
    const files = [
      { path: 'a', moment: 'before' as const, text: 'one\n', whole: true },
      { path: 'a', moment: 'after' as const, whole: false },
    ];
    apply([replace('one', 'two')], { files });
    expect(tree.get(path('a'))).toEqual({ state: 'stale' });
  });

  test('moves the files of a moved folder', () => {
    tree.setWhole(path('old/a'), 'x');
    tree.setWhole(path('older/b'), 'y');
    expect(apply([{ kind: 'move', from: 'old', to: 'new' }])).toEqual([
      { path: '/p/old/a', how: 'deleted' },
      { path: '/p/new/a', how: 'written' },
    ]);
    expect([tree.text(path('new/a')), tree.text(path('older/b'))]).toEqual(['x', 'y']);
  });

  test('removes only what was known in a removed folder', () => {
    tree.setWhole(path('out/a'), 'x');
    expect(apply([{ kind: 'delete', path: 'out', folder: true }])).toEqual([{ path: '/p/out/a', how: 'deleted' }]);
    expect(apply([{ kind: 'delete', path: 'never', folder: true }])).toEqual([]);
    expect(apply([{ kind: 'delete', path: 'single', folder: false }])).toEqual([{ path: '/p/single', how: 'deleted' }]);
  });

  test('leaves a patched and moved file under its new name', () => {
    tree.setWhole(path('a'), 'x\n');
    const hunks = [{ contexts: [], before: ['x'], after: ['y'], atEnd: false }];
    apply([{ kind: 'update', path: 'a', moveTo: 'b', hunks }]);
    expect([tree.get(path('a')), tree.text(path('b'))]).toEqual([{ state: 'deleted' }, 'y\n']);
  });

  test('reports each file once, with its strongest effect', () => {
    const seen = apply([
      { kind: 'name', path: 'a' },
      { kind: 'show', path: 'a', text: 'x', startLine: 1, whole: true },
      { kind: 'list', paths: ['a', 'b'] },
    ]);
    expect(seen).toEqual([
      { path: '/p/a', how: 'whole' },
      { path: '/p/b', how: 'named' },
    ]);
  });
});

describe('recorded paths', () => {
  test.each([
    ['/p', 'a/../b.ts', '/p/b.ts'],
    ['/p', '/abs/x', '/abs/x'],
    ['/home/me/p', '~/x', '/home/me/x'],
    ['D:\\repo', 'src\\a.ts', '/d/repo/src/a.ts'],
    ['/d/repo', 'D:\\repo\\a.ts', '/d/repo/a.ts'],
    ['D:\\repo', '/d/repo/src\\a.ts', '/d/repo/src/a.ts'],
    ['/p', 'src\\a.ts', '/p/src\\a.ts'],
    ['/p', '', undefined],
    ['/p', 'a\0b', undefined],
    [undefined, 'relative', undefined],
    ['/srv', '~/x', undefined],
  ])('in %s resolve %s to %s', (cwd, name, expected) => {
    expect(recordedPath(cwd, name)).toBe(expected);
  });
});
