import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { until } from '../../support/until.js';
import {
  errorKey,
  JSON_TYPE,
  readEdn,
  submitAndWait,
  TRANSIT,
  type Wire,
  type WireAnswer,
} from '../../support/wire.js';
import { testWire } from '../../support/wire-target.js';
import { uniquePrefix } from '../../support/xtdb.js';

let wire: Wire;
const id = uniquePrefix();
const ROWS = 5_000;
const RULES_WITHOUT_END = `${Array.from({ length: 30 }, (_, n) => `[(r${n} e) (r${n + 1} e) (r${n + 1} e)]`).join(
  ' ',
)} [(r30 e) [e :xt/id]]`;

beforeAll(async () => {
  wire = testWire();
  await submitAndWait(
    wire,
    `[:xtdb.api/put {:xt/id "${id}ann" :wq/name "Ann" :wq/age 30 :wq/friend "${id}bob"}]
     [:xtdb.api/put {:xt/id "${id}bob" :wq/name "Bob" :wq/age 20 :wq/tags ["a" "b"]}]`,
  );
  const many = Array.from(
    { length: ROWS },
    (_, n) => `[:xtdb.api/put {:xt/id "${id}${n}" :wq/row "${id}" :wq/n ${n}}]`,
  );
  await submitAndWait(wire, many.join(' '));
});
afterAll(() => wire.close());

const ask = (query: string, inArgs = '[]'): Promise<WireAnswer> =>
  wire.post('/query', `{:query ${query} :in-args ${inArgs}}`);
const rows = async (query: string, inArgs?: string): Promise<unknown> => {
  const answer = await ask(query, inArgs);
  if (answer.status !== 200) throw new Error(`${answer.status}: ${answer.text}`);
  expect(answer.text.startsWith('(')).toBe(true);
  // A bag on the wire: rows may repeat.
  const found = readEdn(answer.text) as unknown[];
  return [...new Map(found.map((row) => [JSON.stringify(row), row])).values()];
};

describe('queries', () => {
  test('are equal as a map, a vector, EDN text and GET', async () => {
    const map = `{:find [n] :where [["${id}ann" :wq/name n]]}`;
    for (const query of [map, `[:find n :where ["${id}ann" :wq/name n]]`, JSON.stringify(map)]) {
      expect(await rows(query)).toEqual([['Ann']]);
    }
    expect(readEdn((await wire.get('/query', { params: { 'query-edn': map } })).text)).toEqual([['Ann']]);
    expect(readEdn((await wire.get('/query', { params: { queryEdn: map } })).text)).toEqual([['Ann']]);
  });

  test('take arguments in EDN or JSON, as one value, a collection or a relation', async () => {
    expect(await rows('{:find [n] :in [e] :where [[e :wq/name n]]}', `["${id}bob"]`)).toEqual([['Bob']]);
    expect(
      await rows(
        '{:find [n] :in [[e ...]] :where [[e :wq/name n]] :order-by [[n :asc]]}',
        `[["${id}bob" "${id}ann" "none"]]`,
      ),
    ).toEqual([['Ann'], ['Bob']]);
    expect(await rows('{:find [n k] :in [[[e k]]] :where [[e :wq/name n]]}', `[[["${id}bob" 7]]]`)).toEqual([
      ['Bob', 7],
    ]);
    const params = {
      'query-edn': '{:find [n] :in [e] :where [[e :wq/name n]]}',
      'in-args-json': JSON.stringify([`${id}ann`]),
    };
    expect(JSON.parse((await wire.get('/query', { params, accept: JSON_TYPE })).text)).toEqual([['Ann']]);
  });

  test.each<readonly [string, string, unknown]>([
    [
      'pull',
      `{:find [(pull e [:wq/name {:wq/friend [:wq/name]}])] :where [[e :xt/id "${id}ann"]]}`,
      [[{ 'wq/name': 'Ann', 'wq/friend': { 'wq/name': 'Bob' } }]],
    ],
    ['named columns', `{:find [n] :keys [name] :where [["${id}ann" :wq/name n]]}`, [{ name: 'Ann' }]],
    [
      'aggregates',
      `{:find [(count e) (max a) (sum a)] :where [[e :wq/age a] [e :wq/name]]}`,
      [[expect.any(Number), 30, expect.any(Number)]],
    ],
    [
      'comparison and arithmetic',
      `{:find [x] :where [["${id}ann" :wq/age a] [(>= a 30)] [(+ a 1) b] [(* b 2) x]]}`,
      [[62]],
    ],
    ['text', `{:find [x] :where [["${id}ann" :wq/name n] [(subs n 0 1) c] [(str c "!") x]]}`, [['A!']]],
    [
      'a function in find',
      `{:find [(if (> a 25) (str "old " a) "young")] :where [["${id}ann" :wq/age a]]}`,
      [['old 30']],
    ],
    [
      'get-attr with a default',
      `{:find [x] :where [[e :xt/id "${id}ann"] [(get-attr e :wq/tags "none") [x ...]]]}`,
      [['none']],
    ],
    [
      'valid times',
      `{:find [e] :where [[e :xt/id "${id}ann"] [(get-start-valid-time e) s] [(get-end-valid-time e) t] [(!= s t)]]}`,
      [[`${id}ann`]],
    ],
    ['a sub-query', `{:find [m] :where [[(q {:find [(max a)] :where [[_ :wq/age a]]}) [[m]]]]}`, [[30]]],
    [
      'rules',
      `{:find [n] :where [(friend "${id}ann" f) [f :wq/name n]] :rules [[(friend a b) [a :wq/friend b]]]}`,
      [['Bob']],
    ],
    [
      'or, and, not',
      '{:find [n] :where [[e :wq/name n] (or [e :wq/age 30] (and [e :wq/age 20] [e :wq/name "Bob"])) (not [e ' +
        ':wq/age 20])]}',
      [['Ann']],
    ],
    ['a set of alternatives', `{:find [n] :where [["${id}ann" :wq/name n] [(== n #{"Ann" "Eve"})]]}`, [['Ann']]],
  ])('return their rows: %s', async (_name, query, expected) => {
    expect(await rows(query)).toEqual(expected);
  });

  test('transit bodies and answers', async () => {
    const query = '["^ ","~:find",["~$n"],"~:in",["~$e"],"~:where",[["~$e","~:wq/name","~$n"]]]';
    const body = `["^ ","~:query",${query},"~:in-args",["${id}ann"]]`;
    const answer = await wire.post('/query', body, { type: TRANSIT, accept: TRANSIT });
    expect([answer.status, answer.text]).toEqual([200, '["~#list",[["Ann"]]]']);
  });

  test('reads as of the basis in the URL', async () => {
    const a = `${id}moving`;
    const first = await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${a}" :wq/v 1}]`);
    await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${a}" :wq/v 2}]`);
    const body = `{:query {:find [v] :where [["${a}" :wq/v v]]}}`;
    expect((await wire.post('/query', body, { params: { 'tx-id': first } })).text).toBe('([1])');
    expect((await wire.post('/query', body)).text).toBe('([2])');
    expect((await wire.post('/query', body, { params: { 'tx-id': 99_999_999 } })).status).toBe(400);
  });

  test('appear as finished in the lists of queries', async () => {
    const marker = `wq-marker-${Date.now()}`;
    // The node notes a query's end in a separate thread, and soon drops it among all others.
    const recent = await until(
      async () => {
        await rows(`{:find [e] :where [[e :xt/id "${marker}"]]}`);
        return (await wire.get('/recent-queries')).text;
      },
      (text) => text.includes(marker),
    );
    expect(recent).toMatch(new RegExp(`#xtdb/query-state \\{[^}]*${marker}`));
    expect(recent.startsWith('(')).toBe(true);
    expect((await wire.get('/slowest-queries')).status).toBe(200);
    const asJson = JSON.parse((await wire.get('/recent-queries', { accept: JSON_TYPE })).text);
    expect(asJson[0]).toMatchObject({
      queryId: expect.any(String),
      status: expect.any(String),
      query: expect.stringContaining(':find'),
    });
  });
});

describe('answers of many rows', () => {
  const all = `{:find [e n] :where [[e :wq/row "${id}"] [e :wq/n n]]}`;

  test('come whole in every encoding, in pieces', async () => {
    const edn = await ask(all);
    expect(edn.headers['transfer-encoding']).toBe('chunked');
    expect(readEdn(edn.text)).toHaveLength(ROWS);
    const json = await wire.get('/query', { params: { 'query-edn': all }, accept: JSON_TYPE });
    expect(JSON.parse(json.text)).toHaveLength(ROWS);
    const viaTransit = await wire.get('/query', { params: { 'query-edn': all }, accept: TRANSIT });
    expect(JSON.parse(viaTransit.text)[1]).toHaveLength(ROWS);
    const csv = await wire.get('/query.csv', { params: { 'query-edn': all } });
    expect(csv.text.trimEnd().split('\n')).toHaveLength(ROWS + 1);
  });

  test('a failure before 32 KB is a proper status', async () => {
    const answer = await ask(`{:find [x] :where [["${id}ann" :wq/age a] [(- a 30) z] [(/ 1 z) x]]}`);
    expect(answer.status).toBe(500);
    expect(readEdn(answer.text)).toMatchObject({ type: 'exception', class: 'java.lang.ArithmeticException' });
    const mixed = await ask(
      `{:find [v] :where [["${id}bob" a v] [(any? a)]] :in [[a ...]] :order-by [[v :asc]]}`,
      '[[:wq/name :wq/age]]',
    );
    expect([400, 500]).toContain(mixed.status);
  });

  test.each([[undefined], [JSON_TYPE], [TRANSIT]])(
    'a failure after that cuts the connection: no answer that looks whole (%s)',
    async (accept) => {
      const clauses = `[e :wq/row "${id}"] [e :wq/n n] [(- ${ROWS - 1} n) z] [(/ 1 z) x]`;
      const late = `{:find [e x] :where [${clauses}] :limit 100000}`;
      await expect(
        wire.get('/query', { params: { 'query-edn': late }, ...(accept === undefined ? {} : { accept }) }),
      ).rejects.toThrow();
      expect((await wire.get('/status')).status).toBe(200);
    },
  );

  test.each([['application/edn'], [JSON_TYPE], [TRANSIT]])(
    'a failure after that follows in a trailer if the client accepts trailers (%s)',
    async (accept) => {
      const clauses = `[e :wq/row "${id}"] [e :wq/n n] [(- ${ROWS - 1} n) z] [(/ 1 z) x]`;
      const late = `{:find [e x] :where [${clauses}] :limit 100000}`;
      const answer = await wire.get('/query', { params: { 'query-edn': late }, accept, headers: { te: 'trailers' } });
      const [status, body = ''] = String(answer.trailers['front-refusal']).split(' ');
      expect([answer.status, status]).toEqual([200, '500']);
      expect(Buffer.from(body, 'base64').toString()).toContain('java.lang.ArithmeticException');
      const whole = await wire.get('/query', { params: { 'query-edn': all }, accept, headers: { te: 'trailers' } });
      expect(whole.trailers).toEqual({});
      expect(whole.text).toMatch(/[\])}]$/);
    },
  );
});

const times = (count: number, clause: (n: number) => string): string =>
  Array.from({ length: count }, (_, n) => clause(n)).join(' ');
const DOUBLED = times(40, (n) => `[(str v${n} v${n}) v${n + 1}]`);
const DOUBLING_RULES = times(9, (n) => `[(d${n} a b) [(str a a) c] (d${n + 1} c b)]`);

describe('queries that build values', () => {
  const path =
    ':rules [[(way a b p) [a :wq/friend b] [(vector a b) p]] ' +
    '[(way a b p) [a :wq/friend c] (way c b q) [(cons a q) p]]]';
  const depth =
    ':rules [[(far a n m) [a :wq/name] [(identity n) m]] ' + '[(far a n m) [a :wq/friend b] [(+ n 1) k] (far b k m)]]';
  test.each<[string, string, unknown]>([
    [
      'six times over',
      `{:find [v6] :where [["${id}ann" :wq/name v0] ${times(6, (n) => `[(str v${n} v${n}) v${n + 1}]`)}]}`,
      [['Ann'.repeat(64)]],
    ],
    ['out of ninety', `{:find [(count x)] :where [["${id}ann" :wq/name a] [(str ${'a '.repeat(90)}) x]]}`, [[1]]],
    [
      'by steps',
      `{:find [n60] :where [["${id}ann" :wq/age n0] ${times(60, (n) => `[(+ n${n} 1) n${n + 1}]`)}]}`,
      [[90]],
    ],
    [
      'in a rule that calls itself',
      `{:find [p] :where [(way "${id}ann" "${id}bob" p)] ${path}}`,
      [[[`${id}ann`, `${id}bob`]]],
    ],
    [
      'counting how deep a rule goes',
      `{:find [m] :where [(far "${id}ann" 0 m)] ${depth} :order-by [[m :asc]]}`,
      [[0], [1]],
    ],
    [
      'tests of many',
      `{:find [a] :where [["${id}ann" :wq/age a] ${times(200, (n) => `[(< a ${n + 100}) b${n}]`)}]}`,
      [[30]],
    ],
    [
      'rules 200 deep',
      `{:find [e] :where [(r0 e)] ` +
        `:rules [${times(200, (n) => `[(r${n} e) (r${n + 1} e)]`)} [(r200 e) [e :wq/age 30]]]}`,
      [[`${id}ann`]],
    ],
  ])('%s are answered', async (_name, query, expected) => {
    expect(await rows(query)).toEqual(expected);
  });
});

describe('refused queries', () => {
  const where = (clause: string): string => `{:find [x] :where [${clause}]}`;
  test.each([
    ['slurp', where('[(slurp "/etc/passwd") x]')],
    ['a shell', where('[(clojure.java.shell/sh "id") x]')],
    ['range', where('[(range 100000000) [x ...]]')],
    ['repeat', where('[(repeat 1) [x ...]]')],
    ['iterate', where('[(iterate inc 1) [x ...]]')],
    ['cycle', where('[(cycle [1]) [x ...]]')],
    ['partition with any step', where('[(partition 1 0 [1 2]) [x ...]]')],
    ['a regular expression', where('[(re-find "a" "aa") x]')],
    ['a pattern', where('[(re-pattern "(a+)+b") x]')],
    ['format', where('[(format "%1000000000d" 1) x]')],
    ['eval', where('[(eval 1) x]')],
    ['a constructor', where('[(java.io.File. "/") x]')],
    ['a static method', where('[(java.lang.System/exit 1) x]')],
    ['a function of another namespace', where('[(clojure.zip/vector-zip [1]) x]')],
    ['XTDB’s own API', where('[(xtdb.api/entity 1) x]')],
    ['another namespace’s str', where('[(evil/str 1) x]')],
    ['a predicate without a binding', `{:find [e] :where [[e :xt/id] [(slurp "/etc/passwd")]]}`],
    ['or', '{:find [e] :where [[e :xt/id] (or [e :a 1] [(slurp "x")])]}'],
    ['and inside or', '{:find [e] :where [[e :xt/id] (or [e :a 1] (and [e :a 2] [(slurp "x")]))]}'],
    ['or-join', '{:find [e] :where [(or-join [e] (and [e :xt/id] [(slurp "x")]))]}'],
    ['not', '{:find [e] :where [[e :xt/id] (not [(slurp "x")])]}'],
    ['not-join', '{:find [e] :where [[e :xt/id] (not-join [e] [e :a f] [(slurp f)])]}'],
    ['a rule', '{:find [x] :where [(r x)] :rules [[(r x) [(slurp "x") x]]]}'],
    ['a rule named like a function', '{:find [x] :where [[(slurp "x") x]] :rules [[(slurp y x) [(identity y) x]]]}'],
    ['a sub-query', '{:find [x] :where [[(q {:find [x] :where [[(slurp "x") x]]}) [[x]]]]}'],
    ['a quoted sub-query', '{:find [x] :where [[(q (quote {:find [x] :where [[(slurp "x") x]]})) [[x]]]]}'],
    ['a sub-query as text', '{:find [x] :where [[(q "{:find [x] :where [[(slurp \\"x\\") x]]}") [[x]]]]}'],
    ['a sub-query as a vector', '{:find [x] :where [[(q [:find x :where [(slurp "x") x]]) [[x]]]]}'],
    ['find', '{:find [(slurp "/etc/passwd") e] :where [[e :xt/id]]}'],
    ['find, deep inside', '{:find [[{:a (str (slurp e))}]] :where [[e :xt/id]]}'],
    ['find, inside an aggregate', '{:find [(count (slurp e))] :where [[e :xt/id]]}'],
    ['find with a special form', '{:find [(do e)] :where [[e :xt/id]]}'],
    ['find with a new object', '{:find [(new java.io.File "/")] :where [[e :xt/id]]}'],
    ['order-by', '{:find [e] :where [[e :xt/id]] :order-by [[(slurp e) :asc]]}'],
    ['a query as text', JSON.stringify('{:find [x] :where [[(slurp "x") x]]}')],
  ])('use a function that is not on the list: %s', async (_name, query) => {
    const answer = await ask(query);
    expect([answer.status, errorKey(answer)]).toEqual([400, 'fn-not-allowed']);
  });

  test('are refused by GET as well', async () => {
    const answer = await wire.get('/query', { params: { 'query-edn': where('[(slurp "/etc/passwd") x]') } });
    expect([answer.status, errorKey(answer)]).toEqual([400, 'fn-not-allowed']);
  });

  test.each([
    ['nothing to find', '{:in [$ e]}'],
    ['a text that is not a query', '"{:find"'],
    ['a number', '7'],
    [
      'a qualified part, which would be checked as code',
      '{:find [e] :where [[e :xt/id]] :xtdb.query/pred-fn evil.ns/x}',
    ],
    ['an unknown part', '{:find [e] :where [[e :xt/id]] :wehre []}'],
    ['metadata', '{:find [^{:tag java.io.File} e] :where [[e :xt/id]]}'],
    ['a list in a triple', '{:find [e] :where [[e :a (slurp "x")]]}'],
    ['a clause that is a map', '{:find [e] :where [{:a 1}]}'],
    ['not nested 100 deep', `{:find [e] :where [[e :xt/id] ${'(not '.repeat(100)}[e :a 1]${')'.repeat(100)}]}`],
    ['find nested 100 deep', `{:find [e ${'['.repeat(100)}e${']'.repeat(100)}] :where [[e :xt/id]]}`],
    ['ten thousand clauses', `{:find [e] :where [${'[e :a 1]'.repeat(10_000)}]}`],
    [
      'rules that a sub-query writes out to 2^30 clauses',
      `{:find [x] :where [[(q {:find [e] :where [(r0 e)]}) [[x]]]] :rules [${RULES_WITHOUT_END}]}`,
    ],
    ['rules that write out to 2^30 clauses', `{:find [e] :where [(r0 e)] :rules [${RULES_WITHOUT_END}]}`],
    ['a text doubled 40 times', `{:find [v40] :in [v0] :where [${DOUBLED}]}`],
    [
      'a text doubled 40 times, told backwards',
      `{:find [v40] :in [v0] :where [${times(40, (n) => `[(str v${39 - n} v${39 - n}) v${40 - n}]`)}]}`,
    ],
    [
      'a collection doubled 40 times',
      `{:find [v40] :in [v0] :where [${DOUBLED.replaceAll('str', 'clojure.core/concat')}]}`,
    ],
    ['a number squared 40 times', `{:find [v40] :in [v0] :where [${DOUBLED.replaceAll('str', '*')}]}`],
    [
      'doubled under other names',
      `{:find [v9] :in [v0] :where [${times(9, (n) => `[(str v${n} v${n}) w${n}] [(== w${n} v${n + 1})]`)}]}`,
    ],
    [
      'doubled by a rule',
      `{:find [v9] :in [v0] :where [${times(9, (n) => `(d v${n} v${n + 1})`)}] :rules [[(d a b) [(str a a) b]]]}`,
    ],
    [
      'doubled in rules that call each other',
      `{:find [z] :in [v0] :where [(d0 v0 z)] :rules [${DOUBLING_RULES} [(d9 a b) [(str a a) b]]]}`,
    ],
    ['doubled by a rule that calls itself', '{:find [x] :in [x] :where [(d x)] :rules [[(d a) [(str a a) b] (d b)]]}'],
    [
      'doubled by two rules that call each other',
      '{:find [x] :in [x] :where [(c x)] :rules [[(c a) [(str a a) b] (d b)] [(d a) (c a)]]}',
    ],
    [
      'doubled by a rule on the way back to another',
      '{:find [x] :in [x] :where [(c x)] :rules [[(c a) (d a b) (c b)] [(d a b) [(str a a) b]]]}',
    ],
    [
      'doubled by a sub-query on the way back',
      '{:find [x] :in [x] :where [(c x)] :rules [[(c a) [(q {:find [y] :in [x] :where [[(str x x) y]]} a) [[b]]] ' +
        '(c b)]]}',
    ],
    [
      'doubled in sub-queries',
      `{:find [z] :in [v0] :where [` +
        `${times(9, (n) => `[(q {:find [y] :in [x] :where [[(str x x) y]]} v${n}) [[v${n + 1}]]]`)}]}`,
    ],
    ['200 values in one text', `{:find [x] :in [a] :where [[(str ${'a '.repeat(200)}) x]]}`],
    ['200 values in one text that is found', `{:find [(str ${'e '.repeat(200)})] :where [[e :xt/id]]}`],
    ['doubled inside or, and, not', `{:find [v0] :in [v0] :where [(not (or (and ${DOUBLED})))]}`],
  ])('have another shape: %s', async (_name, query) => {
    const answer = await ask(query);
    expect([answer.status, errorKey(answer)]).toEqual([400, 'query-spec-failed']);
  });

  test.each([
    ['unknown variables', '{:find [y] :where [[x :xt/id]]}', 'find-unknown-vars'],
    ['an unknown rule', '{:find [x] :where [[x :xt/id] (nobody x)]}', 'unknown-rule'],
    [
      'order by what is not found',
      '{:find [x] :where [[x :wq/age y]] :order-by [[y :asc]]}',
      'order-by-requires-find-element',
    ],
  ])('return XTDB’s own objections: %s', async (_name, query, key) => {
    const answer = await ask(query);
    expect([answer.status, errorKey(answer)]).toEqual([400, key]);
  });

  test('include no query, arguments of another shape, and JSON bodies', async () => {
    expect((await wire.get('/query')).status).toBe(400);
    expect((await wire.post('/query', '{:in-args []}')).status).toBe(400);
    expect((await wire.post('/query', '{:query nil}')).status).toBe(400);
    expect((await ask('{:find [x] :in [x]}', '7')).status).toBe(400);
    expect((await wire.get('/query', { params: { 'query-edn': '{:find [' } })).status).toBe(400);
    const json = await wire.post('/query', JSON.stringify({ query: '{:find [x] :where [[x :xt/id]]}' }), {
      type: JSON_TYPE,
    });
    expect(json.status).toBe(400);
  });
});
