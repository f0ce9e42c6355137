import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { AnswerPack, piecesOf } from '../../../src/page/server/answer-pack.js';
import { answerKey, type Packed } from '../../../src/page/server/page-format.js';
import { unpackedValue } from '../../../src/page/unpacked-value.js';

/** Packs values as in a page, and returns the bytes of JSON. */
function packed(values: readonly unknown[]) {
  const nodes: Packed[] = [];
  let bytes = 0;
  const pack = new AnswerPack((block) => {
    const json = gunzipSync(Buffer.from(block.base64, 'base64'));
    expect(json.length).toBe(block.bytes);
    bytes += json.length;
    nodes.push(...(JSON.parse(json.toString()) as Packed[]));
  });
  const added = values.map((value) => pack.add(value));
  pack.end();
  const read = added.map((one) => unpackedValue(one, (node) => nodes[node]));
  return { read, bytes };
}

describe('the packed data of a page', () => {
  test('unpacks to the same values', () => {
    const hard = [
      { $: 1, a: { $: [1, 2], b: { $: { t: [0] } } } },
      JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}'),
      ['\ud800', '\u2028</script><!--', '', null, false, 0.5],
      Array.from({ length: 1_000 }, (_, i) => ({
        i,
        text: 'some text that is the same in each of them, and long enough to be kept once'.repeat(2),
      })),
      'long text '.repeat(100_000),
    ];
    expect(packed(hard).read).toEqual(hard);
    fc.assert(
      fc.property(
        fc.array(fc.jsonValue(), { maxLength: 5 }),
        (values) => JSON.stringify(packed(values).read) === JSON.stringify(values),
      ),
    );
  });

  test('stores shared parts once: lists and texts that differ in one place', () => {
    const line = (i: number): object => ({
      id: `object-${i}`,
      name: `src/folder/file-${i}.ts`,
      tokens: i,
      text: `id=${i} type=file path=/src/folder/file-${i}.ts`,
    });
    const text = Array.from({ length: 20_000 }, (_, i) => `line ${(i * 7_919) % 10_007} of a text`).join('\n');
    const answers = Array.from({ length: 50 }, (_, n) => ({
      items: [...Array.from({ length: 2_000 }, (_, i) => line(i)).toSpliced(n * 30, 1), line(10_000 + n)],
      text: `${text.slice(0, n * 1_000)}changed ${n}${text.slice(n * 1_000)}`,
    }));
    const { read, bytes } = packed(answers);
    expect(read).toEqual(answers);
    expect(bytes).toBeLessThan(JSON.stringify(answers).length / 15);
  });

  test('joins the pieces of a text', () => {
    fc.assert(fc.property(fc.string({ maxLength: 20_000 }), (text) => piecesOf(text).join('') === text));
  });

  test('has one key for all forms of the same request', () => {
    const scope = { session: 'S', tx: 12, calls: [3, 5, 9] };
    const key = (path: string, parameters: Parameters<typeof answerKey>[1]) => answerKey(path, parameters, scope);
    expect(key('/v1/strip', { session: 'S', tx: '12' })).toBe(key('/v1/strip', { tx: undefined }));
    expect(key('/v1/strip', { session: 'other' })).not.toBe(key('/v1/strip', {}));
    expect(key('/v1/strip', { tx: 11 })).not.toBe(key('/v1/strip', {}));
    expect(key('/v1/request', { session: 'S', at: 'step:6' })).toBe(key('/v1/request', { at: 'step:5' }));
    expect(key('/v1/request', {})).toBe(key('/v1/request', { at: 'step:9' }));
    expect(key('/v1/changes', { range: '..now' })).toBe(key('/v1/changes', { range: 'step:5..step:9' }));
    expect(key('/v1/changes', { range: 'step:3..step:9' })).not.toBe(key('/v1/changes', { range: '..step:9' }));
  });
});
