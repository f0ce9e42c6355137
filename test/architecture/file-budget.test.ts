import { describe, expect, test } from '@jest/globals';
import { sourceFiles } from './source-tree.js';

const VAGUE = /(^|\/)(utils?|helpers?|manager|types|common|misc)\.ts$/;
const sizes = sourceFiles('src').map(({ path, text }) => ({ path, lines: text.split('\n').length }));
const sorted = sizes.map(({ lines }) => lines).sort((a, b) => a - b);
const quantile = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;

describe('small rooms', () => {
  test('no file is over 400 lines', () => {
    expect(sizes.filter(({ lines }) => lines > 400)).toEqual([]);
  });

  test('most files are under 150 lines', () => {
    expect(quantile(0.5)).toBeLessThanOrEqual(110);
    expect(quantile(0.9)).toBeLessThanOrEqual(220);
  });

  test('a file is named for the one thing it holds', () => {
    expect(sizes.filter(({ path }) => VAGUE.test(path))).toEqual([]);
  });
});
