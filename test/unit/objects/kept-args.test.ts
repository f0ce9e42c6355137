import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { canonicalJson, type Json, unboundedJson } from '../../../src/objects/canonical-json.js';
import { hashText } from '../../../src/objects/hashes.js';
import { ARGS_BOUNDS, keptArgs, keptArgsHash } from '../../../src/objects/kept-args.js';
import { namesOfOneHash, nested } from '../../support/hostile-json.js';

const names = (count: number): Record<string, Json> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`name ${i}`, i]));

describe('stored arguments of a call', () => {
  test('stay as they are if they are ordinary and well-formed', () => {
    const args = {
      path: 'a.ts',
      edits: [{ oldText: 'x'.repeat(1_000_000), newText: null }],
      deep: { '\ud800': ['\udc00', 1.5, true] },
    };
    expect(keptArgs(args)).toEqual({ args: { ...args, deep: { '\ufffd': ['\ufffd', 1.5, true] } } });
    expect(keptArgs(names(ARGS_BOUNDS.names)).text).toBeUndefined();
    expect(keptArgs({ deep: nested(ARGS_BOUNDS.depth) as Json }).text).toBeUndefined();
    expect(keptArgsHash(args)).toBeUndefined();
  });

  test.each<[string, { readonly [key: string]: Json }]>([
    ['many names', names(ARGS_BOUNDS.names + 1)],
    ['many names below', { below: Array.from({ length: ARGS_BOUNDS.names }, (_, i) => ({ i })), more: 1 }],
    ['names of one hash', Object.fromEntries(namesOfOneHash(ARGS_BOUNDS.namesOfOneHash + 1).map((name) => [name, 1]))],
    ['nested deep', { deep: nested(ARGS_BOUNDS.depth + 1) as Json }],
    ['nested very deep', { deep: nested(300_000) as Json }],
    ['a long text', { content: 'é'.repeat(ARGS_BOUNDS.units + 1) }],
    ['many values', { list: Array.from({ length: ARGS_BOUNDS.units / 8 + 1 }, () => 0) }],
    ['a number beyond the doubles', { n: [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY] }],
  ])('become one lossless text if they are %s', (_what, args) => {
    const kept = keptArgs(args);
    const { hash, text } = kept.text ?? { hash: '', text: '' };
    expect(hash).toBe(hashText(text));
    expect(keptArgsHash(kept.args)).toBe(hash);
    expect(canonicalJson(kept.args).length).toBeLessThan(200);
    expect(unboundedJson(JSON.parse(text) as Json)).toBe(text);
    expect(unboundedJson(args)).toBe(text);
    expect(keptArgs(Object.fromEntries(Object.entries(args).toReversed()))).toEqual(kept);
  });

  test('are a copy: a later change by the caller changes nothing acknowledged', () => {
    const args = { list: ['a', { b: 1 }], text: 'c' };
    const kept = keptArgs(args);
    args.list.push('later');
    (args.list[1] as { b: number }).b = 2;
    args.text = 'later';
    expect(kept).toEqual({ args: { list: ['a', { b: 1 }], text: 'c' } });
  });

  test('keep a lone surrogate in a text', () => {
    const args = { ...names(ARGS_BOUNDS.names), '\ud800': '\udfff' };
    expect(JSON.parse(keptArgs(args).text?.text ?? '')).toEqual(args);
  });

  test('are canonical JSON if that is possible', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6, stringUnit: 'binary' }), (value) => {
        const json = JSON.parse(JSON.stringify(value).replaceAll('-0', '0')) as Json;
        expect(unboundedJson(json)).toBe(canonicalJson(json));
      }),
      { numRuns: 300 },
    );
  });

  test('refuse cycles', () => {
    const args: Record<string, unknown> = {};
    args.self = [args];
    expect(() => keptArgs(args as Record<string, Json>)).toThrow(expect.objectContaining({ code: 'invalid-value' }));
  });

  test('distinguish similar names from stored ones', () => {
    expect(keptArgsHash({ 'palimpsest:kept_as_text': null })).toBeUndefined();
    expect(keptArgsHash({ 'palimpsest:kept_as_text': { sha256: 'no hash' } })).toBeUndefined();
  });
});
