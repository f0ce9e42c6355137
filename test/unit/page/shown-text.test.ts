import { describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import { addressText, beginAt, commandLine, isOwn, linkTo, parseAddress } from '../../../src/page/address.js';
import { nameDataFolder } from '../../../src/page/command.js';
import { oneLine, textRows, textRuns } from '../../../src/page/shown-text.js';

describe('recorded text', () => {
  test('has no code for the line endings of Windows, and one for a carriage return elsewhere', () => {
    const shown = (text: string) =>
      textRuns(text)
        .map((run) => run.text)
        .join('');
    expect([shown('one\r\ntwo\r'), shown('one\rtwo')]).toEqual(['one\ntwo', 'one\\x0dtwo']);
  });

  test('shows invisible and reordering characters by number', () => {
    expect(textRuns('a\u202eb\u001b[0m\t\u200b')).toEqual([
      { text: 'a', isEscape: false },
      { text: '\\u202e', isEscape: true },
      { text: 'b', isEscape: false },
      { text: '\\x1b', isEscape: true },
      { text: '[0m\t', isEscape: false },
      { text: '\\u200b', isEscape: true },
    ]);
    expect(textRuns('ünï 漢字 🎉')).toEqual([{ text: 'ünï 漢字 🎉', isEscape: false }]);
    expect(oneLine('a\n\u2066b')).toBe('a⏎\\u2066b');
    expect(oneLine('x'.repeat(300))).toHaveLength(201);
  });

  test('is whole and in order in its rows, which split no surrogate pair', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.integer({ min: 2, max: 9 }), (text, width) => {
        const rows = textRows(text, width);
        const lines = new Map<number, string>();
        for (const { line, from, to } of rows) {
          expect(to - from).toBeLessThanOrEqual(width);
          const part = text.slice(from, to);
          expect(part.isWellFormed()).toBe(true);
          lines.set(line, (lines.get(line) ?? '') + part);
        }
        expect([...lines.values()].join('\n')).toBe(text.endsWith('\n') ? text.slice(0, -1) : text);
      }),
    );
  });

  test('shows a line of a megabyte as many rows of one line', () => {
    const rows = textRows('x'.repeat(1_000_000));
    expect(rows).toHaveLength(6_250);
    expect(new Set(rows.map(({ line }) => line))).toEqual(new Set([1]));
  });
});

describe('addresses', () => {
  test('are read as they are written', () => {
    const address = { view: 'changes', of: { session: 'a b', step: '7', tx: '12' } } as const;
    const [pathname = '', search = ''] = addressText(address).split(/(?=\?)/);
    expect(parseAddress({ pathname, search, hash: '' })).toEqual(address);
    expect(parseAddress({ pathname: '/review/__proto__', search: '', hash: '' })).toEqual({ view: 'sessions', of: {} });
  });

  test('follow the file’s own address in a file, and name its session', () => {
    beginAt('#/', { session: 'S' });
    const address = { view: 'object', of: { session: 'S', id: 'a?b#c', tx: '12' } } as const;
    const hash = addressText(address);
    expect(hash).toMatch(/^#\/object\?/);
    expect(parseAddress({ pathname: '/home/me/S.html', search: '', hash })).toEqual(address);
    expect(parseAddress({ pathname: '/review/strip', search: '?session=other', hash: '' })).toEqual({
      view: 'sessions',
      of: { session: 'S' },
    });
    expect([isOwn({ pathname: '/home/me/S.html', hash }), isOwn({ pathname: '/review/', hash: '' })]).toEqual([
      true,
      false,
    ]);
    beginAt('/review/');
  });

  test('keep session, call and transaction in the next view', () => {
    const here = { view: 'strip', of: { session: 'S', step: '7', tx: '12', q: 'x' } } as const;
    expect(linkTo(here, 'request', { step: 9 })).toBe('/review/request?session=S&tx=12&step=9');
    expect(linkTo(here, 'sessions')).toBe('/review/');
  });

  test('name the command line for the same answer', () => {
    expect(commandLine({ view: 'request', of: { session: 'S', step: '7' } })).toBe('palimpsest context S@step:7');
    expect(commandLine({ view: 'query', of: { q: "it's" } })).toBe(`palimpsest query 'it'\\''s'`);
    expect(commandLine({ view: 'changes', of: { session: 'S', step: '7' } })).toBe('palimpsest diff S --prefix');
    nameDataFolder('/data/of mine');
    expect(commandLine({ view: 'object', of: { id: 'a' } })).toBe("palimpsest log --object a --data '/data/of mine'");
    nameDataFolder(undefined);
  });
});
