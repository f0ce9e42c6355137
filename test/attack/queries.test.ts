import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll } from '@jest/globals';
import { print } from '../../src/edn/print.js';
import { encodeTransit } from '../../src/edn/transit.js';
import { type EdnValue, kw, kwMap, list, sym } from '../../src/edn/values.js';
import { attack, several } from '../support/attack.js';
import { suiteData } from '../support/mcp-clients.js';
import { runCli } from '../support/run-cli.js';
import { EDN, JSON_TYPE, TRANSIT, type Wire, type WireAnswer } from '../support/wire.js';
import { testWire } from '../support/wire-target.js';
import { uniquePrefix } from '../support/xtdb.js';
import { type AttackedServer, attackedServer } from './attacked-server.js';

const AT_ONCE = 3;

let server: AttackedServer;
let wire: Wire;
/** The trace that executed code would leave. */
let mark: string;

beforeAll(async () => {
  server = await attackedServer();
  mark = join(server.base, 'code-was-here');
  wire = testWire();
});
afterAll(async () => {
  await wire.close();
  await server.close();
});

/** Calls that reach code, files, processes or the database itself. */
const calls = (): readonly EdnValue[] =>
  [
    ['slurp', '/etc/passwd'],
    ['spit', mark, 'x'],
    ['clojure.core/spit', mark, 'x'],
    ['clojure.core/slurp', '/etc/passwd'],
    ['eval', list(sym('spit'), mark, 'x')],
    ['load-string', `(spit "${mark}" 1)`],
    ['clojure.core/load-string', `(spit "${mark}" 1)`],
    ['read-string', `#=(spit "${mark}" 1)`],
    ['clojure.core/read-string', `#=(spit "${mark}" 1)`],
    ['load-file', mark],
    ['load-reader', mark],
    ['require', 'clojure.java.shell'],
    ['requiring-resolve', 'clojure.java.shell/sh'],
    ['resolve', 'spit'],
    ['ns-resolve', 'clojure.core', 'spit'],
    ['find-var', 'clojure.core/spit'],
    ['intern', 'clojure.core', 'x', 1],
    ['alter-var-root', 1, 2],
    ['clojure.java.shell/sh', 'touch', mark],
    ['clojure.java.io/delete-file', mark],
    ['clojure.java.io/copy', '/etc/passwd', mark],
    ['clojure.main/main', '-e', '1'],
    ['java.lang.System/exit', 1],
    ['System/exit', 1],
    ['java.lang.Runtime/getRuntime'],
    ['java.io.File.', mark],
    ['new', 'java.io.File', mark],
    ['.exec', 'touch', mark],
    ['.getClass', 'x'],
    ['.', 'x', 'getClass'],
    ['..', 'x', 'getClass', 'forName'],
    ['apply', 'spit', mark, 'x'],
    ['map', 'slurp', '/etc/passwd'],
    ['reduce', 'spit', mark, 'x'],
    ['comp', 'spit', 'slurp'],
    ['partial', 'spit', mark],
    ['memfn', 'exec'],
    ['do', 1],
    ['let', [], 1],
    ['fn', [], 1],
    ['fn*', [], 1],
    ['def', 'x', 1],
    ['set!', 'x', 1],
    ['var', 'x'],
    ['throw', 1],
    ['try', 1],
    ['future-call', 1],
    ['send-off', 1, 2],
    ['swap!', 1, 2],
    ['deref', 1],
    ['with-open', [], 1],
    ['re-pattern', '(a+)+b'],
    ['re-find', '(a+)+b', 'aaa'],
    ['format', '%1000000000d', 1],
    ['range', 1_000_000_000],
    ['iterate', 'inc', 1],
    ['repeat', 1],
    ['shutdown-agents'],
    ['xtdb.api/submit-tx', 1, 2],
    ['xtdb.api/entity', 1, 2],
    ['xtdb.query/query', 1],
    ['xtdb.tx.event/fn', 1],
    ['front.main/-main', '--version'],
    ['user/x', 1],
    ['evil/str', 1],
    ['front.bounded/slurp', '/etc/passwd'],
    ['front.passing/spit', mark, 'x'],
  ].map(([name, ...args]) => list(sym(name as string), ...(args as readonly EdnValue[])));

const x = sym('x');
const e = sym('e');
const query = (find: EdnValue, where: readonly EdnValue[], more: Readonly<Record<string, EdnValue>> = {}): EdnValue =>
  kwMap({ find: [find], where: [...where], ...more });
const each: EdnValue = [e, kw('xt/id')];

/** Places of a call in a query. */
const PLACES: readonly (readonly [string, (call: EdnValue) => EdnValue])[] = [
  ['a clause that binds', (call) => query(x, [[call, x]])],
  ['a predicate', (call) => query(e, [each, [call]])],
  ['or', (call) => query(e, [each, list(sym('or'), [e, kw('a'), 1], [call])])],
  ['not', (call) => query(e, [each, list(sym('not'), [call])])],
  ['or-join', (call) => query(e, [list(sym('or-join'), [e], list(sym('and'), each, [call]))])],
  ['a rule', (call) => query(x, [list(sym('r'), x)], { rules: [[list(sym('r'), x), [call, x]]] })],
  ['a sub-query', (call) => query(x, [[list(sym('q'), query(x, [[call, x]])), [[x]]]])],
  ['a sub-query as text', (call) => query(x, [[list(sym('q'), print(query(x, [[call, x]]))), [[x]]]])],
  ['find', (call) => query(call, [each])],
  ['deep in find', (call) => query([kwMap({ a: list(sym('str'), list(sym('str'), call)) })], [each])],
  ['an aggregate', (call) => query(list(sym('count'), call), [each])],
  ['the order', (call) => query(e, [each], { 'order-by': [[call, kw('asc')]] })],
  ['the condition of an if', (call) => query(list(sym('if'), call, 1, 2), [each])],
];

/** Ways to put code in place of data, by type. */
const bodies = (id: string): readonly (readonly [string, string, string])[] => [
  ['/submit-tx', EDN, `{:tx-ops [[:xtdb.api/put {:xt/id "${id}" :xt/fn (fn [ctx] (spit "${mark}" 1))}]]}`],
  ['/submit-tx', EDN, `{:tx-ops [[:xtdb.api/fn "${id}"]]}`],
  ['/submit-tx', EDN, `{:tx-ops [[:crux.tx/fn "${id}"]]}`],
  ['/submit-tx', EDN, `{:tx-ops [[:xtdb.api/put {:xt/id "${id}" :crux.db/fn (fn [ctx] (spit "${mark}" 1))}]]}`],
  ['/submit-tx', EDN, `{:tx-ops [[:xtdb.api/put {:xt/id "${id}" :a #=(spit "${mark}" 1)}]]}`],
  ['/submit-tx', EDN, `{:tx-ops [[:xtdb.api/put {:xt/id "${id}" :a #java.io.File["${mark}"]}]]}`],
  ['/submit-tx', EDN, `{:tx-ops [[:xtdb.api/put {:xt/id "${id}" :a #clojure.lang.Var[spit]}]]}`],
  ['/submit-tx', EDN, `{:tx-ops [[:xtdb.api/put ^{:tag (spit "${mark}" 1)} {:xt/id "${id}"}]]}`],
  [
    '/submit-tx',
    TRANSIT,
    `["^ ","~:tx-ops",[["~:xtdb.api/put",["^ ","~:xt/id","${id}","~:xt/fn",["~#list",["~$fn",["~$ctx"],1]]]]]]`,
  ],
  ['/submit-tx', TRANSIT, `["^ ","~:tx-ops",[["~:xtdb.api/fn","${id}"]]]`],
  [
    '/submit-tx',
    TRANSIT,
    `["^ ","~:tx-ops",[["~:xtdb.api/put",["^ ","~:xt/id","${id}","~:a",["~#java.io.File","${mark}"]]]]]`,
  ],
  [
    '/submit-tx',
    TRANSIT,
    `["^ ","~:tx-ops",[["~:xtdb.api/put",["^ ","~:xt/id","${id}","~:a",["~#with-meta",[["~$x"],["^ ` +
      '","~:tag","y"]]]]]]]',
  ],
  ['/submit-tx', JSON_TYPE, JSON.stringify({ 'tx-ops': [['fn', id]] })],
  ['/submit-tx', JSON_TYPE, JSON.stringify({ 'tx-ops': [['put', { 'xt/id': id, 'xt/fn': `(spit "${mark}" 1)` }]] })],
  ['/submit-tx', JSON_TYPE, JSON.stringify({ 'tx-ops': [['put', { 'xt/id': id, 'crux.db/fn': '1' }]] })],
  ['/query', EDN, `{:query #=(spit "${mark}" 1)}`],
  ['/query', EDN, `{:query {:find [e] :where [[e :xt/id]] :in [a]} :in-args [#=(spit "${mark}" 1)]}`],
  ['/query', EDN, `{:query {:find [e] :where [[e :xt/id]] :xtdb.query/pred-fn clojure.core/eval}}`],
  ['/query', EDN, `{:query {:find [e] :where [[e :xt/id ^{:a (spit "${mark}" 1)} x]]}}`],
  ['/query', EDN, `{:query {:find [x] :where [[(slurp "/etc/passwd") x]]} :fn-allow-list [slurp]}`],
  ['/query', TRANSIT, `["^ ","~:query",["~#list",["~$eval",["~#list",["~$spit","${mark}","x"]]]]]`],
];

attack(
  'queries',
  async (tries) => {
    const judge = (
      what: string,
      { status, text }: Pick<WireAnswer, 'status' | 'text'>,
      refused: readonly number[],
    ): void => {
      const ran = existsSync(mark) || text.includes('root:') ? 'the code ran' : undefined;
      tries.tried(
        what.slice(0, 300),
        ran ?? (refused.includes(status) ? undefined : `it was answered by ${status}: ${text.slice(0, 200)}`),
      );
    };
    const review = async (text: string): Promise<Pick<WireAnswer, 'status' | 'text'>> => {
      const url = new URL('/v1/query', server.serve.url);
      url.searchParams.set('query', text);
      const answer = await fetch(url, { headers: { authorization: `Bearer ${server.serve.token}` } });
      return { status: answer.status, text: await answer.text() };
    };
    const all = calls().flatMap((call) =>
      PLACES.map(([place, put]) => ({ what: `${print(call)} as ${place}`, query: put(call) })),
    );
    await several(tries.some(all, 15), AT_ONCE, async ({ what, query: asked }) => {
      const text = print(asked);
      judge(`EDN: ${what}`, await wire.post('/query', `{:query ${text}}`), [400]);
      judge(
        `transit: ${what}`,
        await wire.post('/query', encodeTransit(kwMap({ query: asked })), { type: TRANSIT }),
        [400],
      );
      judge(`an address: ${what}`, await wire.get('/query', { params: { 'query-edn': text } }), [400]);
      judge(`the review interface: ${what}`, await review(text), [400, 403]);
    });
    for (const [path, type, body] of tries.some(bodies(uniquePrefix()), 10))
      judge(`${type}: ${body}`, await wire.post(path, body, { type }), [400]);
    for (const { what, query: asked } of tries
      .some(all, 1)
      .slice(0, tries.size(0, 400))
      .filter((_, n) => n % 10 === 0)) {
      const { code, stdout, stderr } = await runCli(['query', print(asked), '--data', suiteData()]);
      judge(`the command line: ${what}`, { status: code ?? 0, text: stdout + stderr }, [1, 2, 64, 65, 77]);
    }
  },
  () => server,
);
