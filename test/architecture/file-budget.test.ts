import { describe, expect, test } from '@jest/globals';
import { linesOf, quantile } from './figures.js';
import { sourceFiles } from './source-tree.js';

const VAGUE = /(^|\/)(utils?|helpers?|manager|types|common|misc)\.ts$/;
const sizes = sourceFiles('src').map((file) => ({ path: file.path, lines: linesOf(file) }));
const share = (part: number): number =>
  quantile(
    sizes.map(({ lines }) => lines),
    part,
  );

describe('rooms of a natural size', () => {
  test('no file is over 400 lines', () => {
    expect(sizes.filter(({ lines }) => lines > 400)).toEqual([]);
  });

  test('most files are of a size to be read at once', () => {
    expect(share(0.5)).toBeLessThanOrEqual(180);
    expect(share(0.95)).toBeLessThanOrEqual(320);
  });

  test('a file is named for the one thing it holds', () => {
    expect(sizes.filter(({ path }) => VAGUE.test(path))).toEqual([]);
  });
});
