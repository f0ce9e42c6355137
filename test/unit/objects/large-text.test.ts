import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  abridge,
  abridgeEnds,
  CHUNK_UNITS,
  chunkPieces,
  chunkText,
  HEAD_UNITS,
  isLargeText,
  LARGE_TEXT_BYTES,
  TAIL_UNITS,
} from '../../../src/objects/large-text.js';

/**
 * Texts of a few repeated parts: ASCII, line endings and astral characters, so that cuts hit all of
 * them.
 */
const longText = (low: number, high: number) =>
  fc
    .tuple(
      fc.array(fc.constantFrom('a', 'line\n', '\r\n', '\u{1f600}', '\u{1f600}\n', 'é', 'xyz'), {
        minLength: 1,
        maxLength: 9,
      }),
      fc.nat(3),
    )
    .chain(([parts, shift]) => fc.integer({ min: low, max: high }).map((length) => ({ parts, shift, length })))
    .map(({ parts, shift, length }) => {
      const unit = parts.join('');
      const text = 'a'.repeat(shift) + unit.repeat(Math.ceil(length / unit.length));
      return text.isWellFormed() ? text : text.toWellFormed();
    });

describe('chunks (decision G5)', () => {
  test('join to the text, and are never too long, empty or ill-formed', () => {
    fc.assert(
      fc.property(longText(0, 3 * CHUNK_UNITS), (text) => {
        const chunks = [...chunkText(text)];
        expect(chunks.join('') === text).toBe(true);
        for (const chunk of chunks) {
          expect(chunk.length).toBeGreaterThan(0);
          expect(chunk.length).toBeLessThanOrEqual(CHUNK_UNITS);
          expect(chunk.isWellFormed()).toBe(true);
        }
      }),
      { numRuns: 25 },
    );
  });

  test('are independent of the pieces in which the text arrives', () => {
    fc.assert(
      fc.property(longText(CHUNK_UNITS, 2 * CHUNK_UNITS), fc.integer({ min: 1000, max: 700_001 }), (text, size) => {
        const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
          text.slice(index * size, (index + 1) * size),
        );
        const lengths = [...chunkPieces(pieces)].map((chunk) => chunk.length);
        expect(lengths).toEqual([...chunkText(text)].map((chunk) => chunk.length));
      }),
      { numRuns: 20 },
    );
  });

  test('move a pair across the cut whole into the next chunk', () => {
    const text = `${'a'.repeat(CHUNK_UNITS - 1)}\u{1f600}b`;
    expect([...chunkText(text)].map((chunk) => chunk.length)).toEqual([CHUNK_UNITS - 1, 3]);
  });

  test('are one for a text of exactly one chunk and none for an empty text', () => {
    expect([...chunkText('x'.repeat(CHUNK_UNITS))]).toHaveLength(1);
    expect([...chunkText('')]).toEqual([]);
  });
});

describe('abridging (decision C6)', () => {
  test('keeps head and tail of the text; head, omitted and tail add up', () => {
    fc.assert(
      fc.property(longText(0, 300_000), (text) => {
        const { content, head, tail, omitted } = abridge(text);
        expect(head.length + omitted + tail.length).toBe(text.length);
        expect(text.startsWith(head) && text.endsWith(tail)).toBe(true);
        expect(head.length).toBeLessThanOrEqual(omitted === 0 ? HEAD_UNITS + TAIL_UNITS : HEAD_UNITS);
        expect(tail.length).toBeLessThanOrEqual(TAIL_UNITS);
        expect(content.isWellFormed()).toBe(true);
        if (omitted > 0) expect(content.split('\n')).toContain(`[... ${omitted} characters omitted ...]`);
        else expect(content).toBe(text);
      }),
      { numRuns: 60 },
    );
  });

  test('cuts at line endings if there are any', () => {
    const text = Array.from({ length: 40_000 }, (_, index) => `line ${index}\n`).join('');
    const { head, tail, content } = abridge(text);
    expect(head.endsWith('\n')).toBe(true);
    expect(tail.startsWith('line ')).toBe(true);
    expect(text.at(text.length - tail.length - 1)).toBe('\n');
    expect(content.startsWith(`${head}[... `)).toBe(true);
  });

  test('cuts a text without line endings at the exact units, with the marker on a separate line', () => {
    const { head, tail, content } = abridge('x'.repeat(100_000));
    expect([head.length, tail.length]).toEqual([HEAD_UNITS, TAIL_UNITS]);
    expect(content).toBe(`${head}\n[... ${100_000 - HEAD_UNITS - TAIL_UNITS} characters omitted ...]\n${tail}`);
  });

  test('keeps both ends despite a short first line and a closing newline', () => {
    const { head, tail } = abridge(`// licence\n${'x'.repeat(200_000)}\n`);
    expect([head.length, tail.length]).toEqual([HEAD_UNITS, TAIL_UNITS]);
  });

  test('keeps surrogate pairs at both cuts whole', () => {
    const { head, tail, omitted } = abridge(`a${'\u{1f600}'.repeat(100_000)}b`);
    expect([head.isWellFormed(), tail.isWellFormed()]).toEqual([true, true]);
    expect([head.length, tail.length, omitted]).toEqual([
      HEAD_UNITS - 1,
      TAIL_UNITS - 1,
      200_002 - HEAD_UNITS - TAIL_UNITS + 2,
    ]);
  });

  test('gives the same result from both ends as from the whole text', () => {
    fc.assert(
      fc.property(longText(HEAD_UNITS + TAIL_UNITS + 10, 300_000), fc.integer({ min: 2, max: 5000 }), (text, more) => {
        const start = text.slice(0, HEAD_UNITS + more);
        expect(abridgeEnds(start, text.slice(-(TAIL_UNITS + more)), text.length)).toEqual(abridge(text));
      }),
      { numRuns: 40 },
    );
  });
});

describe('the limit for large text (decision C6)', () => {
  test('is in bytes of UTF-8, and a text of exactly the limit is small', () => {
    expect(isLargeText('x'.repeat(LARGE_TEXT_BYTES))).toBe(false);
    expect(isLargeText('x'.repeat(LARGE_TEXT_BYTES + 1))).toBe(true);
    expect(isLargeText('é'.repeat(LARGE_TEXT_BYTES / 2))).toBe(false);
    expect(isLargeText('é'.repeat(LARGE_TEXT_BYTES / 2 + 1))).toBe(true);
  });
});
