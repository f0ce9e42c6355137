import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import stringify from 'json-stable-stringify';
import { canonicalFields } from '../../../src/objects/canonical-json.js';

const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string({ unit: 'grapheme' }),
    fc.integer(),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
    tie('list'),
    tie('map'),
  ),
  list: fc.array(tie('value'), { maxLength: 5 }),
  map: fc.dictionary(fc.string({ unit: 'grapheme' }), tie('value'), { maxKeys: 5, noNullPrototype: true }),
})).map;

describe('canonical JSON of fields', () => {
  test('has the bytes of json-stable-stringify, the first time and from the cache', () => {
    fc.assert(
      fc.property(json, (fields) => {
        const wanted = stringify(fields);
        expect(canonicalFields(fields as object)).toBe(wanted);
        expect(canonicalFields({ ...(fields as object) })).toBe(wanted);
      }),
      { numRuns: 500 },
    );
  });

  test('omits absent fields and keeps nulls', () => {
    expect(canonicalFields({ b: undefined, a: null, '10': [], '9': ['x'] })).toBe('{"10":[],"9":["x"],"a":null}');
  });

  test('deep-freezes cached values, so that none goes stale', () => {
    const turn = { turn: 1, messages: [{ role: 'user', text: 'x' }] };
    canonicalFields({ turns: [turn] });
    expect(Object.isFrozen(turn.messages[0])).toBe(true);
  });

  test.each([
    ['NaN', { a: [{ b: Number.NaN }] }],
    ['a lone surrogate in a list', { a: ['\ud83d'] }],
    ['a date', { a: [new Date()] }],
    ['a hole', { a: [undefined] }],
  ])('refuses %s', (_name, fields) => {
    expect(() => canonicalFields(fields)).toThrow(expect.objectContaining({ name: 'DocumentError' }));
  });
});
