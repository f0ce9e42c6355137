import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
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

/** Keys of one hash: each is compared with all before it, and 32,768 of them took over 36 s. */
let wire: Wire;
const id = uniquePrefix();

beforeAll(() => {
  wire = testWire();
});
afterAll(() => wire.close());

/** Texts of one hash in Java: `Aa` and `BB` share one, and so do all their combinations. */
const ofOneHash = (count: number): string[] =>
  Array.from({ length: count }, (_, n) =>
    Array.from({ length: 16 }, (_, bit) => ((n >> bit) & 1 ? 'BB' : 'Aa')).join(''),
  );
const FLOOD = ofOneHash(32_768);
const quoted = (texts: readonly string[]): string => texts.map((text) => `"${text}"`).join(' ');
const pairs = (texts: readonly string[]): string => texts.map((text) => `"${text}" 1`).join(' ');
const put = (value: string): Promise<WireAnswer> =>
  wire.post('/submit-tx', `{:tx-ops [[:xtdb.api/put {:xt/id "${id}x" :args ${value}}]]}`);
const ask = (query: string, inArgs: string): Promise<WireAnswer> =>
  wire.post('/query', `{:query ${query} :in-args ${inArgs}}`);

async function expectRefused(answer: Promise<WireAnswer>): Promise<void> {
  const started = Date.now();
  const { status, text } = await answer;
  expect([status, text]).toEqual([
    400,
    expect.stringContaining('More than 64 keys of one map or set have the same hash'),
  ]);
  expect(Date.now() - started).toBeLessThan(10_000);
}

describe('keys of one hash are refused', () => {
  test.each([
    ['a map', `{${pairs(FLOOD)}}`],
    ['a map deep inside', `[[{:a {${pairs(FLOOD)}}}]]`],
    ['a set', `#{${quoted(FLOOD)}}`],
    ['a map with a namespace', `#:deep{${pairs(FLOOD)}}`],
    ['keys that are vectors', `{${FLOOD.map((text) => `["${text}"] 1`).join(' ')}}`],
    [
      'keys that are doubles',
      `{${FLOOD.slice(0, 2_000)
        .map((_, n) => `${doubleOfHashZero(n + 1)} 1`)
        .join(' ')}}`,
    ],
    ['parts of a value that is indexed', `[${FLOOD.map((text) => `["${text}"]`).join(' ')}]`],
    ['keywords, of which there is one table', `[${FLOOD.map((text) => `:${text}`).join(' ')}]`],
    ['a map that is discarded', `#_{${pairs(FLOOD)}} 1`],
  ])('in EDN: %s', (_name, value) => expectRefused(put(value)));

  test('in transit', async () => {
    const submit = (value: unknown): Promise<WireAnswer> =>
      wire.post(
        '/submit-tx',
        JSON.stringify(['^ ', '~:tx-ops', [['~:xtdb.api/put', ['^ ', '~:xt/id', `${id}x`, '~:args', value]]]]),
        {
          type: TRANSIT,
        },
      );
    await expectRefused(submit(['^ ', ...FLOOD.flatMap((text) => [text, 1])]));
    await expectRefused(submit(['~#set', FLOOD]));
    await expectRefused(submit(FLOOD.map((text) => `~:${text}`)));
    await expectRefused(submit(['~#cmap', FLOOD.flatMap((text) => [[text], 1])]));
  });

  test('in JSON', async () => {
    const named = Object.fromEntries(FLOOD.map((text) => [text, 1]));
    await expectRefused(
      wire.post('/submit-tx', JSON.stringify({ 'tx-ops': [['put', { 'xt/id': `${id}x`, args: named }]] }), {
        type: JSON_TYPE,
      }),
    );
    // JSON keys become keywords with another hash. These texts share one there.
    const names = keywordsOfOneHash(2_000);
    const args = Object.fromEntries(names.map((name) => [name, 1]));
    const body = JSON.stringify({ 'tx-ops': [['put', { 'xt/id': `${id}x`, args }]] });
    await expectRefused(wire.post('/submit-tx', body, { type: JSON_TYPE }));
  });

  test('in arguments of a query, by POST and by GET', async () => {
    await expectRefused(ask('{:find [(count m)] :in [m]}', `[{${pairs(FLOOD)}}]`));
    const params = { 'query-edn': '{:find [(count m)] :in [m]}', 'in-args-edn': `[{${pairs(FLOOD.slice(0, 1_000))}}]` };
    await expectRefused(wire.get('/query', { params }));
  });

  test.each([
    ['set', '(set v)'],
    ['frequencies', '(frequencies v)'],
    ['distinct', '(distinct v)'],
    ['zipmap', '(zipmap v v)'],
  ])('if a query makes keys of a vector: %s', (_name, call) =>
    expectRefused(ask(`{:find [(count x)] :in [v] :where [[${call} x]]}`, `[[${quoted(FLOOD)}]]`)),
  );
});

describe('harmless keys pass', () => {
  const whole = async (value: string): Promise<unknown> => {
    const name = `${id}${Math.random()}`;
    await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${name}" :v ${value}}]`);
    const found = readEdn((await wire.get('/entity', { params: { eid: name } })).text) as { v: unknown };
    return found.v;
  };
  const many = Array.from({ length: 20_000 }, (_, n) => `name-${n}`);

  test('as many keys of one hash as allowed', async () => {
    expect(Object.keys((await whole(`{${pairs(ofOneHash(64))}}`)) as object)).toHaveLength(64);
    const oneMore = await put(`{${pairs(ofOneHash(65))}}`);
    expect([oneMore.status, errorKey(oneMore)]).toEqual([400, 'too-many-collisions']);
  });

  test('a map and a set of 20,000 keys, in every encoding', async () => {
    // Read as JSON: the EDN reader here takes minutes for so many keys.
    const stored = async (value: string): Promise<unknown> => {
      await submitAndWait(wire, `[:xtdb.api/put {:xt/id "${id}many" :v ${value}}]`);
      return JSON.parse((await wire.get('/entity', { params: { eid: `${id}many` }, accept: JSON_TYPE })).text).v;
    };
    expect(await stored(`{${many.map((name) => `"${name}" 1`).join(' ')}}`)).toEqual(
      Object.fromEntries(many.map((name) => [name, 1])),
    );
    expect(((await stored(`#{${quoted(many)}}`)) as string[]).sort()).toEqual([...many].sort());
    const asJson = JSON.stringify({
      'tx-ops': [['put', { 'xt/id': `${id}json`, v: Object.fromEntries(many.map((name) => [name, 1])) }]],
    });
    expect((await wire.post('/submit-tx', asJson, { type: JSON_TYPE })).status).toBe(202);
    const asTransit = JSON.stringify([
      '^ ',
      '~:tx-ops',
      [['~:xtdb.api/put', ['^ ', '~:xt/id', `${id}t`, '~:v', ['^ ', ...many.flatMap((name) => [name, 1])]]]],
    ]);
    expect((await wire.post('/submit-tx', asTransit, { type: TRANSIT })).status).toBe(202);
  });

  const padding = 'x'.repeat(200);
  test.each<[string, string, unknown]>([
    ['braces and quotes in texts', `{"{a" "}#{\\"" "p" "${padding}"}`, { '{a': '}#{"', p: padding }],
    ['braces in comments', `{"a" 1 ; }{ #{\n "p" "${padding}"}`, { a: 1, p: padding }],
    [
      'what is discarded',
      `{"a" #_{:x "${padding}"} 1 #_#{:y} "p" #{"${padding}" "q"}}`,
      { a: 1, p: expect.arrayContaining([padding, 'q']) },
    ],
    [
      'no space between parts',
      `{"a"{"b"#{"${padding}"}}"c"[{"d""${padding}"}]}`,
      { a: { b: [padding] }, c: [{ d: padding }] },
    ],
    ['keywords that end at a brace', `{:a{:b "${padding}"} :c#d 1}`, { a: { b: padding }, 'c#d': 1 }],
    ['namespaces', `#:n{:a 1 :m/b 2 :_/c "${padding}" "d" 3}`, { 'n/a': 1, 'm/b': 2, c: padding, d: 3 }],
    [
      'long maps in long maps',
      `{"o" {"i" {"p" "${padding}"}} "l" ({"p" "${padding}"})}`,
      { o: { i: { p: padding } }, l: [{ p: padding }] },
    ],
  ])('EDN with %s', async (_name, value, expected) => {
    expect(await whole(value)).toEqual(expected);
  });

  test.each([
    ['a key twice', `{"a" 1 "a" 2 "p" "${padding}"}`],
    ['a member twice', `#{"a" "a" "${padding}"}`],
    ['a key without a value', `{"a" 1 "${padding}"}`],
    ['a brace that closes nothing', `{"p" "${padding}"}}`],
    ['a bracket for a brace', `{"p" "${padding}"]`],
  ])('EDN with %s is malformed', async (_name, value) => {
    const answer = await put(value);
    expect([answer.status, readEdn(answer.text)]).toEqual([400, { error: 'Malformed "application/edn" request.' }]);
  });
});

/** Doubles with equal upper and lower halves have the hash zero. */
function doubleOfHashZero(n: number): string {
  const bits = new DataView(new ArrayBuffer(8));
  bits.setUint32(0, 0x3f_f0_00_00 + n);
  bits.setUint32(4, 0x3f_f0_00_00 + n);
  return String(bits.getFloat64(0));
}

/**
 * Murmur3 of a keyword's name; two characters make a block. For each first block it finds the
 * second that leads to one common state.
 */
function keywordsOfOneHash(count: number): string[] {
  const rotate = (x: number, by: number): number => ((x << by) | (x >>> (32 - by))) >>> 0;
  const inverse = (odd: number): number => {
    let x = odd;
    for (let i = 0; i < 5; i++) x = Math.imul(x, 2 - Math.imul(odd, x));
    return x >>> 0;
  };
  const mixed = (block: number): number => Math.imul(rotate(Math.imul(block, 0xcc9e2d51) >>> 0, 15), 0x1b873593) >>> 0;
  const unmixed = (k: number): number =>
    Math.imul(rotate(Math.imul(k, inverse(0x1b873593)) >>> 0, 17), inverse(0xcc9e2d51)) >>> 0;
  const step = (h: number, block: number): number =>
    (Math.imul(rotate((h ^ mixed(block)) >>> 0, 13), 5) + 0xe6546b64) >>> 0;
  const goal = 0x12345678;
  const before = rotate(Math.imul(goal - 0xe6546b64, inverse(5)) >>> 0, 19);
  const names: string[] = [];
  const plain = (block: number): boolean =>
    [block & 0xffff, block >>> 16].every((unit) => unit > 0x100 && (unit < 0xd800 || unit > 0xf8ff) && unit < 0xfff0);
  for (let n = 0; names.length < count; n++) {
    const first = (0x4e00 + (n & 0x1fff)) | ((0x4e00 + (n >>> 13)) << 16);
    const second = unmixed((before ^ step(0, first)) >>> 0);
    if (plain(second)) names.push(String.fromCharCode(first & 0xffff, first >>> 16, second & 0xffff, second >>> 16));
  }
  return names;
}
