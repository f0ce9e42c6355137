import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { EdnMap, EdnSet, type EdnValue, kw, list, sym } from '../../../src/edn/values.js';
import { distinctRows, each, encodeQuery, predicate, pull, triple } from '../../../src/xtdb/datalog.js';
import { XtdbError } from '../../../src/xtdb/errors.js';

const e = sym('?e');
const n = sym('?n');

describe('a query', () => {
  test('is written from data, with its values as arguments', () => {
    const text = encodeQuery(
      {
        find: [e, n, pull(e), pull(e, ['type', 'xt/id']), list(sym('max'), n)],
        in: [sym('?s'), each(e), [[e, n]]],
        where: [
          triple(e, 'session_ref', sym('?s')),
          triple(e, 'seq', n),
          triple(e, 'gone'),
          predicate('>=', n, sym('?lo')),
        ],
        orderBy: [[n, 'desc']],
        limit: 5,
      },
      ['s"1', ['a'], [['a', 1]]],
    );
    expect(text).toBe(
      '{:query {:find [?e ?n (pull ?e [*]) (pull ?e [:type :xt/id]) (max ?n)] :in [?s [?e ...] [[?e ?n]]] ' +
        ':where [[?e :session_ref ?s] [?e :seq ?n] [?e :gone] [(>= ?n ?lo)]] :order-by [[?n :desc]] :limit 5} ' +
        ':in-args ["s\\"1" ["a"] [["a" 1]]]}',
    );
  });

  test.each([-1, 1.5, Number.NaN])('refuses the limit %d', (limit) => {
    expect(() => encodeQuery({ find: [e], limit }, [])).toThrow(XtdbError);
  });

  test('refuses an argument that would become syntax', () => {
    expect(() => encodeQuery({ find: [e] }, [{ sym: '(evict)' } as unknown as EdnValue])).toThrow(XtdbError);
  });
});

describe('rows are a set', () => {
  test('merge equal rows in the order of their first appearance', () => {
    const document = (order: readonly EdnValue[]): EdnMap => new EdnMap(order);
    expect(
      distinctRows([
        ['b', 1],
        ['a', document([kw('x'), 1, kw('y'), [1, 2]])],
        ['b', 1],
        ['a', document([kw('y'), [1, 2], kw('x'), 1])],
        ['a', document([kw('y'), [2, 1], kw('x'), 1])],
        ['b', '1'],
        [new EdnSet([1, 2])],
        [new EdnSet([2, 1])],
      ]),
    ).toHaveLength(5);
  });

  test('have equal keys exactly for equal rows', () => {
    const scalar = fc.oneof(
      fc.string({ unit: fc.constantFrom('"', ':', ';', '[', ']', '1', 'a', ',') }),
      fc.integer({ min: -2, max: 12 }),
      fc.boolean(),
      fc.constant(null),
    );
    const value: fc.Arbitrary<EdnValue> = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }));
    const row = fc.array(value, { maxLength: 3 });
    fc.assert(
      fc.property(fc.array(row, { maxLength: 6 }), (rows) => {
        expect(distinctRows(rows)).toHaveLength(new Set(rows.map((cells) => JSON.stringify(cells))).size);
        expect(distinctRows([...rows, ...rows])).toEqual(distinctRows(rows));
      }),
      { numRuns: 500 },
    );
  });
});
