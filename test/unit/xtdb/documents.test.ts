import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decodeTransit, encodeTransit } from '../../../src/edn/transit.js';
import { EdnMap, kw } from '../../../src/edn/values.js';
import {
  fromDocument,
  type StoredDocument,
  type StoredValue,
  toAttribute,
  toDocument,
} from '../../../src/xtdb/documents.js';
import { XtdbError } from '../../../src/xtdb/errors.js';

const overTheWire = (document: StoredDocument): StoredDocument =>
  toDocument(decodeTransit(encodeTransit(fromDocument(document))));

const refusalOf = (act: () => unknown): XtdbError => {
  try {
    act();
  } catch (error) {
    if (error instanceof XtdbError) return error;
    throw error;
  }
  throw new Error('expected a refusal');
};

const withBody = (body: StoredValue): StoredDocument => ({ 'xt/id': 'a', body });

describe('documents follow the attribute list [decision G9]', () => {
  test.each([
    'name',
    'xt/fn',
    'crux.db/fn',
    'xtdb.api/evicted?',
    'x} [:xtdb.api/evict "y"] {:z',
    '__proto__x',
    'constructor',
    'toString',
    '',
  ])('and refuse the attribute %j by name', (name) => {
    const refusal = refusalOf(() => fromDocument({ 'xt/id': 'a', [name]: 'v' }));
    expect(refusal.code).toBe('bad-request');
    expect(refusal.message).toContain(JSON.stringify(name));
  });

  const wrong: readonly (readonly [string, unknown])[] = [
    ['xt/id', ''],
    ['xt/id', 5],
    ['xt/id', null],
    ['type', null],
    ['type', 'a\ud83d'],
    ['content', 1],
    ['char_count', 1.5],
    ['char_count', '1'],
    ['char_count', 2 ** 53],
    ['char_count', Number.NaN],
    ['char_count', null],
    ['gone', 'true'],
    ['gone', null],
    ['args', undefined],
    ['args', { a: undefined }],
    ['args', { a: Number.POSITIVE_INFINITY }],
    ['args', { 'a\ud83d': 1 }],
    ['args', { a: new Date() }],
    ['args', new Map()],
    ['args', { a: 10n }],
  ];
  test.each(wrong)('%s: refuse %p by name', (name, value) => {
    const refusal = refusalOf(() => fromDocument({ 'xt/id': 'a', [name]: value } as StoredDocument));
    expect(refusal.code).toBe('bad-request');
    expect(refusal.message).toContain(JSON.stringify(name));
  });

  test('refuse a document without an id', () => {
    expect(refusalOf(() => fromDocument({ type: 'file' } as unknown as StoredDocument)).code).toBe('bad-request');
  });
});

describe('store nested values as one map and restore them', () => {
  test.each([
    [[]],
    [['a', 'b']],
    [{}],
    [null],
    ['text'],
    [5],
    [false],
    [{ v: [1] }],
    [{ v: 'x' }],
    [{ m: { v: [1] } }],
    [{ m: {} }],
    [{ v: 1, m: 2 }],
    [{ v: { m: { v: [] } } }],
    [[[], {}, null]],
    [{ n: [1, 1.5, 1e20, -1e300, 5e-324, 0] }],
    [{ '~:a': 1, '^ ': 2, ':x': 3, '': 4, 'x} [:xtdb.api/evict': 5, constructor: 6, toString: 7 }],
    [JSON.parse('{"__proto__": {"polluted": true}}') as StoredValue],
  ])('%j', (body) => {
    const read = overTheWire(withBody(body));
    expect(JSON.stringify(read)).toBe(JSON.stringify(withBody(body)));
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });

  test('store an array under one key of a map, which costs one index key', () => {
    expect(fromDocument(withBody(['a']))).toEqual(new EdnMap([kw('xt/id'), 'a', kw('body'), new EdnMap(['v', ['a']])]));
  });

  test('keep only null as null, so that the attribute has one index type', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (body) => {
        const stored = fromDocument(withBody(body as StoredValue)).get('body');
        expect(body === null ? stored === null : stored instanceof EdnMap).toBe(true);
      }),
    );
  });

  test('carry any JSON over the wire', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), (body) => {
        const plain = JSON.parse(JSON.stringify(body)) as StoredValue;
        expect(overTheWire(withBody(plain))).toEqual(withBody(plain));
      }),
      { numRuns: 500 },
    );
  });
});

describe('answers of the database', () => {
  test.each([
    ['an unknown attribute', new EdnMap([kw('xt/id'), 'a', kw('other'), 1])],
    ['a key that is not a keyword', new EdnMap([kw('xt/id'), 'a', 'type', 'file'])],
    ['a long that came back as a double', new EdnMap([kw('xt/id'), 'a', kw('char_count'), 1.5])],
    ['a nested value that is not a map', new EdnMap([kw('xt/id'), 'a', kw('args'), ['a']])],
    ['a nested map with keywords', new EdnMap([kw('xt/id'), 'a', kw('args'), new EdnMap([kw('a'), 1])])],
    ['no id', new EdnMap([kw('type'), 'file'])],
    ['no document', 'a'],
  ])('are a bad response with %s', (_name, value) => {
    expect(refusalOf(() => toDocument(value)).code).toBe('bad-response');
  });

  test('return a single attribute of a row in its form in the document', () => {
    expect(toAttribute('turns', new EdnMap(['v', ['a']]))).toEqual(['a']);
    expect(toAttribute('content', null)).toBeNull();
  });
});
