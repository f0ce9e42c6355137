import { describe, expect, test } from '@jest/globals';
import { FileTree, UndoTexts } from '../../../../src/lab/replay/files/file-tree.js';
import { canonicalPath } from '../../../../src/objects/ids.js';

const A = canonicalPath('/p/a.ts');
const B = canonicalPath('/p/b.ts');

describe('the file tree of a recording', () => {
  test('takes a whole read as the file', () => {
    const tree = new FileTree();
    tree.setWhole(A, 'one\ntwo\n');
    expect(tree.text(A)).toBe('one\ntwo\n');
    expect(tree.get(B)).toBeUndefined();
  });

  test('never completes a file from partial reads unless every line was seen', () => {
    const tree = new FileTree();
    tree.overlay(A, { text: 'one\ntwo', startLine: 1, total: 4 });
    tree.overlay(A, { text: 'four', startLine: 4, total: 4 });
    expect(tree.get(A)?.state).toBe('partial');
    expect(tree.text(A)).toBeUndefined();
    tree.overlay(A, { text: 'three', startLine: 3 });
    expect(tree.text(A)).toBe('one\ntwo\nthree\nfour\n');
  });

  test('keeps a file partial if its number of lines is unknown', () => {
    const tree = new FileTree();
    tree.overlay(A, { text: 'one\ntwo', startLine: 1 });
    expect(tree.get(A)).toEqual({
      state: 'partial',
      lines: new Map([
        [1, 'one'],
        [2, 'two'],
      ]),
      total: undefined,
    });
  });

  test('ignores a part that agrees with a whole text, and keeps only a part that contradicts it', () => {
    const tree = new FileTree();
    tree.setWhole(A, 'one\ntwo\nthree\n');
    tree.overlay(A, { text: 'two', startLine: 2, total: 3 });
    expect(tree.text(A)).toBe('one\ntwo\nthree\n');
    tree.overlay(A, { text: 'TWO', startLine: 2, total: 3 });
    expect(tree.get(A)).toEqual({ state: 'partial', lines: new Map([[2, 'TWO']]), total: 3 });
  });

  test('holds no text as certain after a possible change of any file, until it is shown again', () => {
    const tree = new FileTree();
    tree.setWhole(A, 'x\n');
    tree.overlay(B, { text: 'y', startLine: 7 });
    tree.doubtAll();
    expect([tree.text(A), tree.get(A), tree.get(B)]).toEqual([
      undefined,
      { state: 'whole', text: 'x\n', sure: false },
      { state: 'stale' },
    ]);
    tree.setWhole(A, 'x\n');
    expect(tree.text(A)).toBe('x\n');
  });

  test('learns from a mention that a file exists, and keeps what it knew', () => {
    const tree = new FileTree();
    tree.name(A);
    expect(tree.get(A)).toEqual({ state: 'named' });
    tree.setWhole(A, 'x');
    tree.name(A);
    expect(tree.text(A)).toBe('x');
    tree.delete(A);
    tree.name(A);
    expect(tree.get(A)).toEqual({ state: 'named' });
  });

  test('moves the text of a moved file; without a known text, the target is unknown', () => {
    const tree = new FileTree();
    tree.setWhole(A, 'x');
    tree.move(A, B);
    expect([tree.get(A), tree.text(B)]).toEqual([{ state: 'deleted' }, 'x']);
    tree.move(canonicalPath('/p/never.ts'), A);
    expect(tree.get(A)).toEqual({ state: 'stale' });
  });

  test('lists existing files below a folder, by whole components', () => {
    const tree = new FileTree();
    for (const path of ['/p/src/b.ts', '/p/src/a.ts', '/p/srcs/c.ts', '/p/src/gone.ts'])
      tree.setWhole(canonicalPath(path), '');
    tree.delete(canonicalPath('/p/src/gone.ts'));
    expect(tree.below(canonicalPath('/p/src'))).toEqual(['/p/src/a.ts', '/p/src/b.ts']);
  });

  test('forgets the least recently used text beyond its bound, and reports that', () => {
    const tree = new FileTree(1_000);
    tree.setWhole(A, 'a'.repeat(600));
    tree.setWhole(B, 'b'.repeat(600));
    expect([tree.get(A), tree.text(B)?.length, tree.forgotten]).toEqual([{ state: 'stale' }, 600, 1]);
    tree.setWhole(A, 'a'.repeat(5_000));
    expect(tree.get(A)).toEqual({ state: 'stale' });
    expect(tree.states).toEqual({ whole: 1, partial: 0, named: 0, stale: 1, deleted: 0 });
  });
});

const [a, b] = [canonicalPath('/p/a'), canonicalPath('/p/b')];

describe('texts before changes', () => {
  test('return newest first, file by file, and then none', () => {
    const undo = new UndoTexts();
    undo.push(a, 'one');
    undo.push(b, 'other');
    undo.push(a, undefined);
    undo.push(a, 'three');
    expect([undo.pop(a), undo.pop(a), undo.pop(a), undo.pop(a)]).toEqual(['three', undefined, 'one', undefined]);
    expect(undo.pop(b)).toBe('other');
  });

  test('are kept for twenty changes of a file', () => {
    const undo = new UndoTexts();
    for (let i = 1; i <= 25; i++) undo.push(a, `text ${i}`);
    const texts = Array.from({ length: 25 }, () => undo.pop(a));
    expect(texts.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, i) => `text ${25 - i}`));
    expect(texts.slice(20)).toEqual(Array(5).fill(undefined));
  });

  test('are dropped for the least recently changed file when there are too many', () => {
    const undo = new UndoTexts(3_000);
    undo.push(a, 'a'.repeat(1_500));
    undo.push(b, 'b'.repeat(1_500));
    expect(undo.pop(a)).toBeUndefined();
    expect(undo.pop(b)).toBe('b'.repeat(1_500));
  });

  test('of one large file are the newest that fit', () => {
    const undo = new UndoTexts(3_000);
    for (const letter of ['x', 'y', 'z']) undo.push(a, letter.repeat(1_200));
    expect([undo.pop(a), undo.pop(a), undo.pop(a)]).toEqual(['z'.repeat(1_200), 'y'.repeat(1_200), undefined]);
  });
});
