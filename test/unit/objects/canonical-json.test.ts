import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import stringify from 'json-stable-stringify';
import { assertPlainJson, canonicalJson } from '../../../src/objects/canonical-json.js';
import { DocumentError } from '../../../src/objects/errors.js';

function codeOf(value: unknown): string | undefined {
  try {
    canonicalJson(value);
  } catch (error) {
    return error instanceof DocumentError ? error.code : String(error);
  }
  return undefined;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < depth; i++) value = i % 2 === 0 ? [value] : { a: value };
  return value;
}

class Point {
  readonly x = 1;
}

describe('canonical JSON (decision A1)', () => {
  test.each<[string, unknown, string]>([
    ['NaN', Number.NaN, 'not-finite'],
    ['an infinity', { a: [Number.POSITIVE_INFINITY] }, 'not-finite'],
    ['a negative infinity', Number.NEGATIVE_INFINITY, 'not-finite'],
    ['undefined', undefined, 'invalid-value'],
    ['an undefined member', { a: undefined }, 'invalid-value'],
    ['a hole in a list', Array(1), 'invalid-value'],
    ['a lone surrogate', 'a\ud800', 'lone-surrogate'],
    ['a lone surrogate in a key', { 'a\udc00': 1 }, 'lone-surrogate'],
    ['a Date', { at: new Date(0) }, 'invalid-value'],
    ['a Map', new Map(), 'invalid-value'],
    ['a Set', [new Set()], 'invalid-value'],
    ['an instance of a class', new Point(), 'invalid-value'],
    ['bytes', new Uint8Array(1), 'invalid-value'],
    ['a function', { toJSON: () => 1 }, 'invalid-value'],
    ['a bigint', 1n, 'invalid-value'],
    ['a symbol', Symbol('x'), 'invalid-value'],
    ['what is too deep', nested(201), 'invalid-value'],
  ])('refuses %s', (_name, value, code) => {
    expect(codeOf(value)).toBe(code);
  });

  test('refuses a cycle like excessive depth', () => {
    const cycle: unknown[] = [];
    cycle.push({ cycle });
    expect(codeOf(cycle)).toBe('invalid-value');
  });

  test('accepts the maximum depth and objects without a prototype', () => {
    expect(codeOf(nested(200))).toBeUndefined();
    expect(canonicalJson(Object.assign(Object.create(null), { b: 1, a: -0 }))).toBe('{"a":0,"b":1}');
  });

  test('names the place of the value in the message', () => {
    expect(() => assertPlainJson({ a: [{ b: Number.NaN }] }, 'args')).toThrow('args.a[0].b');
  });

  test('has the bytes of json-stable-stringify, which parse back to the value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = canonicalJson(value);
        expect(text).toBe(stringify(value));
        expect(canonicalJson(JSON.parse(text))).toBe(text);
      }),
    );
  });

  test('ignores key order and white space of the source, but not the order of lists', () => {
    expect(canonicalJson(JSON.parse(' {"b": {"d": 1, "c": 2}, "a": [2, 1]} '))).toBe('{"a":[2,1],"b":{"c":2,"d":1}}');
    expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]));
  });

  test('sorts keys by UTF-16 units, not by code points or locale', () => {
    expect(canonicalJson({ '\uff5e': 1, '\u{1f600}': 2, é: 3, z: 4, Z: 5, a: 6 })).toBe(
      '{"Z":5,"a":6,"z":4,"é":3,"\u{1f600}":2,"\uff5e":1}',
    );
  });

  test('treats a key named like the prototype as a key', () => {
    expect(canonicalJson(JSON.parse('{"__proto__":{"a":1},"constructor":2}'))).toBe(
      '{"__proto__":{"a":1},"constructor":2}',
    );
  });
});
