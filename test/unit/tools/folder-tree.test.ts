import { describe, expect, test } from '@jest/globals';
import { treeLines } from '../../../src/tools/folder-tree.js';

const PATHS = ['README.md', 'src/a.ts', 'src/deep/b.ts', 'src/deep/er/c.ts', 'docs/x.md'];
const plain = (name: string): string => name;

describe('a tree of files', () => {
  test('lists folders first, with one space per level', () => {
    const { lines, named } = treeLines(PATHS, 9, plain);
    expect(lines).toEqual(['docs/', ' x.md', 'src/', ' deep/', '  er/', '   c.ts', '  b.ts', ' a.ts', 'README.md']);
    expect([...named].sort()).toEqual([...PATHS].sort());
  });

  test('counts deeper folders without naming their files', () => {
    const { lines, named } = treeLines(PATHS, 2, plain);
    expect(lines).toEqual(['docs/', ' x.md', 'src/', ' deep/ (2 files)', ' a.ts', 'README.md']);
    expect(named).not.toContain('src/deep/b.ts');
    expect(treeLines(PATHS, 1, plain).lines).toEqual(['docs/ (1 file)', 'src/ (3 files)', 'README.md']);
  });
});
