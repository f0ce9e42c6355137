import { describe, expect, test } from '@jest/globals';
import { sym } from '../../../src/edn/values.js';
import { HistoryError } from '../../../src/history/rebuild/history-error.js';
import { columnNames, parseQuery } from '../../../src/review/ask/parse-query.js';

const codeOf = (text: string): string => {
  try {
    parseQuery(text);
  } catch (error) {
    return error instanceof HistoryError ? error.code : String(error);
  }
  return 'none';
};

describe('a query of a reviewer', () => {
  test('reads equally in both forms', () => {
    const map = parseQuery('{:find [?e (count ?x)] :where [[?e :type "file"]] :limit 3}');
    expect(parseQuery('[:find ?e (count ?x) :where [?e :type "file"] :limit 3]')).toEqual(map);
    expect(map.find[0]).toEqual(sym('?e'));
    expect(map.limit).toBe(3);
    expect(columnNames(map)).toEqual(['?e', 'count ?x']);
  });

  test.each([
    '{:find [?e] :where [[?e :type "file"] [(get-start-valid-time ?e) ?t] [(> ?t #inst "2026-01-01T00:00:00Z")]]}',
    '{:find [(pull ?e [:xt/id {:source [:path]}])] :where [[?e :type "file"]]}',
    '{:find [?a] :where [(or [?a :seq 1] (and [?a :seq 2] (not [?a :type "step"])))]}',
    '{:find [?a] :where [(older ?a ?b)] :rules [[(older ?a ?b) [?a :seq ?x] [?b :seq ?y] [(< ?x ?y)]]]}',
    '{:find [?e] :in [[?t ...]] :where [[?e :type ?t]] :order-by [[?e :asc]] :offset 2}',
  ])('accepts %s', (text) => {
    expect(codeOf(text)).toBe('none');
  });

  test.each([
    '{:find [?x] :where [[(slurp "/etc/passwd") ?x]]}',
    '{:find [?x] :where [[(clojure.java.shell/sh "id") ?x]]}',
    '{:find [?x] :where [[(clojure.core/str 1) ?x]]}',
    '{:find [?x] :where [[(range 100000000) [?x ...]]]}',
    '{:find [(slurp ?x)] :where [[?x :type]]}',
    '{:find [?x] :where [[?x :type "file"]] :order-by [[(eval ?x) :asc]]}',
    '{:find [?x] :where [(not [(spit "a" "b")])]}',
    '{:find [?x] :where [(r ?x)] :rules [[(r ?x) [(eval ?x)]]]}',
    '{:find [?x] :where [(r (slurp "a"))] :rules [[(r ?x) [?x :type]]]}',
    '{:find [?x] :where [[?x :type (slurp "a")]]}',
    '{:find [?x] :where [[(str (slurp "a")) ?x]]}',
    '{:find [(sum #{(slurp ?x)})] :where [[?x :type]]}',
    '{:find [#{(eval ?x)}] :where [[?x :type]]}',
    '{:find [?x] :where [[?x :type #{(slurp "a")}]]}',
    '{:find [?x] :where [[(str #tag (slurp "a")) ?x]]}',
    '{:find [?x] :where [[(q {:find [?y] :where [[?y :type]]}) ?x]]}',
  ])('refuses %s, which would run code', (text) => {
    expect(codeOf(text)).toBe('query-refused');
  });

  test.each([
    ['', 'ends'],
    ['{:find [?e] :where [[?e :type "file"]', 'ends'],
    ['{:find [?e] :where [[?e :type "file"]]} {:find []}', 'second form'],
    ['{:find [?e] :where [[?e :type "file"]] :timeout 1}', ':timeout'],
    ['{:find [?e] :where [[?e :type "file"]] :args [{:a 1}]}', ':args'],
    ['{:find [?e]}', ':where'],
    ['{:where [[?e :type]]}', ':find'],
    ['{:find [?e] :where [[?e :type]] :limit -1}', 'whole number'],
    ['{:find ?e :where [[?e :type]]}', 'vector'],
    ['[?e :find]', ':find'],
    ['[:find ?e :find ?x]', 'twice'],
    ['"text"', 'neither'],
    ['{:find [?e] :where [[?e :type]] :order-by [[?e :up]]}', ':order-by'],
    ['{:find [?e] :where [[?e :type]] :order-by [?e]}', ':order-by'],
    ['{:find [?e] :where [((f) ?e)]}', 'list must begin'],
    ['{:find [?e] :where [[?e :type]] :rules [["x"]]}', 'rule'],
    [`{:find [?e] :where [[?e :type "${'x'.repeat(20_001)}"]]}`, 'characters'],
    [`{:find [?e] :where [${'['.repeat(9_000)}${']'.repeat(9_000)}]}`, 'deeper'],
    [`{:find [?e] :where [[${'#a '.repeat(6_000)}1]]}`, ''],
  ])('reports why %.60s is malformed', (text, why) => {
    expect(codeOf(text)).toBe('malformed-query');
    expect(() => parseQuery(text)).toThrow(why);
  });
});
