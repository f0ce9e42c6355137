import { describe, expect, test } from '@jest/globals';
import { UndoTexts } from '../../../src/lab/replay/files/undo-texts.js';
import { canonicalPath } from '../../../src/objects/ids.js';

const [a, b] = [canonicalPath('/p/a'), canonicalPath('/p/b')];

describe('texts before changes', () => {
  test('come back newest first, file by file, and then none', () => {
    const undo = new UndoTexts();
    undo.push(a, 'one');
    undo.push(b, 'other');
    undo.push(a, undefined);
    undo.push(a, 'three');
    expect([undo.pop(a), undo.pop(a), undo.pop(a), undo.pop(a)]).toEqual(['three', undefined, 'one', undefined]);
    expect(undo.pop(b)).toBe('other');
  });

  test('are remembered for twenty changes of a file', () => {
    const undo = new UndoTexts();
    for (let i = 1; i <= 25; i++) undo.push(a, `text ${i}`);
    const texts = Array.from({ length: 25 }, () => undo.pop(a));
    expect(texts.slice(0, 20)).toEqual(Array.from({ length: 20 }, (_, i) => `text ${25 - i}`));
    expect(texts.slice(20)).toEqual(Array(5).fill(undefined));
  });

  test('are given up of the file that was changed longest ago when there are too many', () => {
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
