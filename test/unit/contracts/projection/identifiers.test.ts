import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { cutText } from '../../../../src/contracts/projection/cut-text.js';
import {
  criticalIdentifiers,
  identifiersIn,
  MOST_IDENTIFIERS,
} from '../../../../src/contracts/projection/identifiers.js';
import { BYTES, projectionOf, WORDS } from '../../../support/any-session.js';
import { anyText } from '../../../support/any-text.js';

describe('critical identifiers', () => {
  test.each([
    ['see `npm run lint` first', ['npm run lint']],
    ['at https://example.org/a?b=1, then', ['https://example.org/a?b=1']],
    ['commit 3f96cd73fb, not the defaced one', ['3f96cd73fb']],
    ['set PALIMPSEST_DATA', ['PALIMPSEST_DATA']],
    ['in src/a.ts and /etc/hosts, or ./run.sh', ['src/a.ts', '/etc/hosts', './run.sh']],
    ['calls store.writes.flush now', ['store.writes.flush']],
    ['issue #12, ticket AB-77, port 8080', ['#12', 'AB-77', '8080']],
    ['nothing to name here', []],
  ])('are found in a text: %s', (text, names) => {
    expect(identifiersIn(text)).toEqual(expect.arrayContaining(names));
    if (names.length === 0) expect(identifiersIn(text)).toEqual([]);
  });

  test('are the last ones of messages and calls, not of tool outputs', () => {
    const many = Array.from({ length: 60 }, (_, i) => `/part/${i}.ts`).join(' ');
    const { entries } = projectionOf([
      { kind: 'user', text: many },
      { kind: 'calls', text: '', calls: [{ output: '/from/a/tool.ts', args: { path: '/args.ts' }, when: 'now' }] },
    ]);
    const found = criticalIdentifiers(entries);
    expect(found).toHaveLength(MOST_IDENTIFIERS);
    expect(found.at(-1)).toBe('/args.ts');
    expect(found).toContain('/part/59.ts');
    expect(found).not.toContain('/part/0.ts');
    expect(found).not.toContain('/from/a/tool.ts');
  });
});

describe('a text within a limit', () => {
  test('exceeds it at most by the omission line, and splits no character', () => {
    fc.assert(
      fc.property(anyText({ maxLength: 300 }), fc.nat(200), fc.constantFrom(BYTES, WORDS), (text, limit, counter) => {
        const cut = cutText(text, limit, counter);
        expect(cut.isWellFormed()).toBe(true);
        if (counter.count(text) <= limit && text.length <= limit * 8) expect(cut).toBe(text);
        if (counter.count(cut) > limit)
          expect(cut === text || /^\[\.\.\. \d+ characters omitted \.\.\.\]$/.test(cut)).toBe(true);
      }),
    );
  });
});
