import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { HistoryError } from '../../../src/history/rebuild/history-error.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { askQuery } from '../../../src/review/ask/ask.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import type { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { openTestClient } from '../../support/xtdb.js';

const chain = (times: number, make: (from: string, to: string) => string): readonly string[] =>
  Array.from({ length: times }, (_, i) => make(`?s${i}`, `?s${i + 1}`));

const doubling = chain(30, (from, to) => `[(str ${from} ${from}) ${to}]`);

describe('a query that builds ever larger values', () => {
  let xtdb: XtdbClient;
  let timeline: Timeline;

  beforeAll(async () => {
    xtdb = openTestClient();
    timeline = await Timeline.open(new ObjectStore(xtdb));
  });
  afterAll(() => xtdb.close());

  const outcome = async (clauses: string, rules = ''): Promise<readonly [string, string]> => {
    try {
      await askQuery(
        timeline,
        `{:find [?e] :where [[?e :type ?s0] ${clauses}]${rules === '' ? '' : ` :rules [${rules}]`}}`,
        { limit: 1 },
      );
    } catch (error) {
      if (error instanceof HistoryError) return [error.code, error.message];
      throw error;
    }
    return ['none', ''];
  };

  test.each([
    ['texts', doubling.join(' ')],
    ['clauses in any order', [...doubling].reverse().join(' ')],
    [
      'collections',
      chain(30, (from, to) => `[(concat ${from} ${from}) ?c${to.slice(2)}] [(vec ?c${to.slice(2)}) ${to}]`).join(' '),
    ],
    [
      'vectors that become a text',
      `${chain(30, (from, to) => `[(vector ${from} ${from}) ${to}]`).join(' ')} [(str ?s30) ?t]`,
    ],
    ['through parts', chain(30, (from, to) => `[(vector ${from} ${from}) [?a ?b]] [(str ?a ?b) ${to}]`).join(' ')],
    [
      'through equality',
      chain(30, (from, to) => `[(str ${from} ${from}) ?x${to.slice(2)}] [(== ?x${to.slice(2)} ${to})]`).join(' '),
    ],
    ['inside a join', `(or (and ${doubling.join(' ')}))`],
    ['by many arguments', `[(str ${'?s0 '.repeat(101)}) ?t]`],
  ])('is refused by the node with its reason: %s', async (_name, clauses) => {
    expect(await outcome(clauses)).toEqual([
      'query-refused',
      'the node refuses a value made out of more than 100 others: the result of the query could exceed the memory ' +
        'of the database',
    ]);
  });

  test('is refused if a rule carries the value on or builds it repeatedly', async () => {
    const carried = chain(
      30,
      (from, to) => `[(str ${from} ${from}) ?x${to.slice(2)}] (same ?x${to.slice(2)} ${to})`,
    ).join(' ');
    expect((await outcome(carried, '[(same ?a ?b) [(identity ?a) ?b]]'))[0]).toBe('query-refused');
    const [code, message] = await outcome('(d ?s0)', '[(d ?a) [(str ?a ?a) ?b] (d ?b)]');
    expect([code, message]).toEqual(['query-refused', expect.stringContaining('a rule that calls itself')]);
  });

  test.each([
    ['[(str ?s0 "-" ?s0) ?t]', ''],
    ['[(str ?s0 "-") ?t] [(subs ?t 0 3) ?u] [(str ?u "!") ?v]', ''],
    ['[(count ?s0) ?n] [(+ ?n 1) ?m] [(* ?m 2) ?k] [(> ?k 3)]', ''],
    ['[(vector ?s0 ?e) ?t]', ''],
    ['[(str (str (str ?s0 ?s0) ?s0) ?s0) ?t]', ''],
    ['(twice ?s0 ?t)', '[(twice ?a ?b) [(str ?a ?a) ?b]]'],
  ])('is accepted if it is %s', async (clauses, rules) => {
    expect(await outcome(clauses, rules)).toEqual(['none', '']);
  });
});
