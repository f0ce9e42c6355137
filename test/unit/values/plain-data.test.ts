import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { copyOfData, sameData } from '../../../src/values/plain-data.js';

const data = fc.jsonValue({ maxDepth: 4 });

describe('plain data', () => {
  test('equals exactly the values with the same JSON', () => {
    fc.assert(
      fc.property(data, data, (one, other) => {
        const again: unknown = JSON.parse(JSON.stringify(one));
        expect(sameData(JSON.parse(JSON.stringify(again)), again)).toBe(true);
        if (sameData(one, other)) expect(JSON.stringify(one)).toBe(JSON.stringify(other));
      }),
    );
  });

  test('differs if a member is added, removed or changed', () => {
    const value = { a: [1, { b: 'x' }], c: null };
    for (const other of [
      { ...value, d: undefined },
      { a: value.a },
      { ...value, a: [1, { b: 'y' }] },
      { ...value, a: [1, { b: 'x' }, 2] },
      { ...value, a: { 0: 1, 1: { b: 'x' } } },
      { ...value, c: {} },
      { a: value.a, d: null },
    ]) {
      expect(sameData(value, other)).toBe(false);
      expect(sameData(other, value)).toBe(false);
    }
  });

  test('never equals, not even itself, if it is not plain or nests too deeply', () => {
    let deep: unknown = 'bottom';
    for (let i = 0; i < 300; i++) deep = [deep];
    for (const value of [new Date(0), new Map(), { at: new Date(0) }, [new (class Own {})()], deep, Number.NaN]) {
      expect(sameData(value, value)).toBe(false);
      expect(sameData(copyOfData(value), value)).toBe(false);
    }
  });

  test('keeps a key named like the prototype in a copy', () => {
    const value: unknown = JSON.parse('{"a":1,"__proto__":{"b":[2]}}');
    expect(JSON.stringify(copyOfData(value))).toBe('{"a":1,"__proto__":{"b":[2]}}');
    expect(sameData(copyOfData(value), value)).toBe(true);
  });

  test('shares no object with an equal copy: changes do not reach the other', () => {
    fc.assert(
      fc.property(data, (value) => {
        const text = JSON.stringify(value);
        const copy = copyOfData(value);
        expect(JSON.stringify(copy)).toBe(text);
        (function spoil(one: unknown): void {
          if (typeof one !== 'object' || one === null) return;
          for (const member of Object.values(one)) spoil(member);
          if (Array.isArray(one)) one.push('spoilt');
          else Object.assign(one, { spoilt: true });
        })(value);
        expect(JSON.stringify(copy)).toBe(text);
      }),
    );
  });
});
