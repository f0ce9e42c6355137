import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { continuation, frame, headerLine, withinLimits } from '../../../src/tools/framing.js';
import { pageOf } from '../../../src/tools/page.js';
import { failureText } from '../../../src/tools/tool.js';
import { anyText } from '../../support/any-text.js';

describe('answers', () => {
  test('have a header of one line for any file name', () => {
    expect(headerLine('file', { path: 'src/a.ts', chars: 3, lines: undefined })).toBe('[file path=src/a.ts chars=3]');
    expect(headerLine('file', { path: 'a b]\n[file id=x' })).toBe('[file path="a b]\\n[file id=x"]');
    fc.assert(
      fc.property(anyText(), (path) => {
        const line = headerLine('file', { path });
        expect(line.split(/[\n\r\u2028\u2029\u0085]/)).toHaveLength(1);
        const value = line.slice('[file path='.length, -1);
        if (value.includes(']')) expect(JSON.parse(value)).toBe(path);
      }),
    );
  });

  test('name the rest and the exact next call in a continuation', () => {
    const page = pageOf('a\nb\nc\n', { offset: 1, column: 1, limit: 2 }, { chars: 100, lines: 10 });
    expect(continuation(page, 'read', { path: 'x y' })).toBe('[1 more lines. Continue: read path="x y" offset=3]');
    const long = pageOf('abcdef', { offset: 1, column: 1 }, { chars: 4, lines: 10 });
    expect(continuation(long, 'read', { id: 'i' })).toBe('[line 1 goes on. Continue: read id=i offset=1 column=5]');
  });

  test('put notes on lines of their own', () => {
    expect(frame('[h]', 'a\n', ['[n]', undefined])).toBe('[h]\na\n[n]');
    expect(frame('[h]', 'a', ['[n]'])).toBe('[h]\na\n[n]');
    expect(frame('[h]', '')).toBe('[h]');
  });

  test('never exceed the limits', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('\n', 'x'.repeat(30), '😀', ' '), { maxLength: 200 }), (parts) => {
        const text = withinLimits(parts.join(''), { chars: 300, lines: 20 });
        expect(text.length).toBeLessThanOrEqual(300);
        expect(text.split('\n').length).toBeLessThanOrEqual(21);
        expect(text.isWellFormed()).toBe(true);
      }),
    );
    const kept = withinLimits(`[head]\n${'line\n'.repeat(100)}[foot]`, { chars: 10_000, lines: 20 });
    expect(kept.startsWith('[head]\n')).toBe(true);
    expect(kept.endsWith('[... cut at the output limit ...]\n[foot]')).toBe(true);
  });

  test('stay under 2 kB for an error', () => {
    expect(failureText('it failed.', 'Call again.')).toBe('Error: it failed.\nCall again.');
    expect(Buffer.byteLength(failureText('ü'.repeat(5_000), '😀'.repeat(5_000)))).toBeLessThan(2_000);
  });
});
