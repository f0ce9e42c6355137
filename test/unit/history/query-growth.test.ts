import { describe, expect, test } from '@jest/globals';
import { parseQuery } from '../../../src/history/ask/parse-query.js';
import { HistoryError } from '../../../src/history/rebuild/history-error.js';

const codeOf = (clauses: string, rules = ''): string => {
  try {
    parseQuery(`{:find [?e] :where [[?e :type ?s0] ${clauses}] :rules [${rules}]}`);
  } catch (error) {
    return error instanceof HistoryError ? error.code : String(error);
  }
  return 'none';
};

const chain = (times: number, make: (from: string, to: string) => string): readonly string[] =>
  Array.from({ length: times }, (_, i) => make(`?s${i}`, `?s${i + 1}`));

const doubling = chain(30, (from, to) => `[(str ${from} ${from}) ${to}]`);

describe('a query that makes ever larger values', () => {
  test.each([
    ['texts', doubling.join(' ')],
    ['clauses in any order', [...doubling].reverse().join(' ')],
    ['collections', chain(30, (from, to) => `[(concat ${from} ${from}) ?c${to.slice(2)}] [(vec ?c${to.slice(2)}) ${to}]`).join(' ')],
    ['vectors that become a text', `${chain(30, (from, to) => `[(vector ${from} ${from}) ${to}]`).join(' ')} [(str ?s30) ?t]`],
    ['through parts', chain(30, (from, to) => `[(vector ${from} ${from}) [?a ?b]] [(str ?a ?b) ${to}]`).join(' ')],
    ['through equality', chain(30, (from, to) => `[(str ${from} ${from}) ?x${to.slice(2)}] [(== ?x${to.slice(2)} ${to})]`).join(' ')],
    ['inside a join', `(or (and ${doubling.join(' ')}))`],
    ['inside one call', '[(str (str (str ?s0 ?s0) ?s0) ?s0) ?t]'],
    ['by many arguments', `[(str ${'?s0 '.repeat(11)}) ?t]`],
  ])('is refused: %s', (_name, clauses) => {
    expect(codeOf(clauses)).toBe('query-refused');
  });

  test('is refused where a rule carries the value on, or makes it', () => {
    const carried = chain(30, (from, to) => `[(str ${from} ${from}) ?x${to.slice(2)}] (same ?x${to.slice(2)} ${to})`).join(' ');
    expect(codeOf(carried, '[(same ?a ?b) [(identity ?a) ?b]]')).toBe('query-refused');
    expect(codeOf('(twice ?s0 ?t)', '[(twice ?a ?b) [(str ?a ?a) ?b]]')).toBe('query-refused');
  });

  test.each([
    '[(str ?s0 "-" ?s0) ?t]',
    '[(str ?s0 "-") ?t] [(subs ?t 0 3) ?u] [(str ?u "!") ?v]',
    '[(count ?s0) ?n] [(+ ?n 1) ?m] [(* ?m 2) ?k] [(> ?k 3)]',
    '[(vector ?s0 ?e) ?t]',
    '[(identity ?s0) ?s0]',
  ])('%s is taken', (clauses) => {
    expect(codeOf(clauses)).toBe('none');
  });
});
