import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { JournalError } from '../../../src/journal/errors.js';
import { decodePayload, encodePayload } from '../../../src/journal/payload.js';
import { assertPlainJson, canonicalJson, type Json } from '../../../src/objects/canonical-json.js';
import { anyText } from '../../support/any-text.js';

const encoded = (value: Json): Buffer => Buffer.concat(encodePayload(value));
const roundTrip = (value: Json): Json => decodePayload(encoded(value));

const long = fc
  .tuple(anyText({ minLength: 1, maxLength: 20 }), fc.integer({ min: 1_000, max: 1_100 }))
  .map(([text, length]) => text.repeat(Math.ceil(length / text.length)));
const text = fc.oneof(
  anyText(),
  long,
  fc.string().map((rest) => `~${rest}`),
  fc.nat(5).map((n) => `~${n}`),
);
const json = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    text,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
    fc.array(tie('value'), { maxLength: 5 }),
    fc.dictionary(fc.oneof(anyText(), fc.constant('__proto__'), long), tie('value'), { maxKeys: 5 }),
  ),
})).value;

function codeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return error instanceof JournalError ? error.code : String(error);
  }
  return 'no error';
}

describe('the payload of a record', () => {
  test('reads back exactly for any canonical JSON', () => {
    fc.assert(
      fc.property(json, (value) => {
        const back = roundTrip(value);
        expect(canonicalJson(back)).toBe(canonicalJson(value));
        expect(JSON.stringify(back)).toBe(JSON.stringify(value));
        expect(encoded(back)).toEqual(encoded(value));
      }),
      { numRuns: 300 },
    );
  });

  test('is refused with the words of canonical JSON for invalid values, at any depth', () => {
    const odd = fc.oneof(
      fc.constantFrom<unknown>(
        Number.NaN,
        Number.POSITIVE_INFINITY,
        undefined,
        '\ud83d',
        new Date(0),
        new Map(),
        1n,
        () => 1,
      ),
      fc.constantFrom<unknown>([undefined], { '\ude00': 1 }, Object.create({ a: 1 }), Object.create(null)),
      json,
    );
    const messageOf = (work: () => unknown): string => {
      try {
        work();
      } catch (error) {
        return String(error);
      }
      return 'accepted';
    };
    const nested = (value: unknown, depth: number): unknown =>
      Array.from({ length: depth }).reduce<unknown>((inner, _, n) => (n % 2 === 0 ? [inner] : { inner }), value);
    fc.assert(
      fc.property(odd, fc.oneof(fc.nat(4), fc.integer({ min: 196, max: 204 })), (value, depth) => {
        const whole = nested(value, depth);
        const refusal = messageOf(() => assertPlainJson(whole, 'record'));
        expect(messageOf(() => encodePayload(whole as Json))).toBe(refusal);
      }),
      { numRuns: 500 },
    );
  });

  test('stores a repeated long text once and verbatim', () => {
    const content = 'line with "quotes"\n'.repeat(5_000);
    const bytes = encoded({ file: { content }, call: { content }, other: [content, 'short'] });
    expect(bytes.length).toBeLessThan(content.length + 200);
    expect(bytes.indexOf(content)).toBeGreaterThan(0);
    expect(roundTrip({ file: { content }, call: { content } })).toEqual({ file: { content }, call: { content } });
  });

  test('keeps a byte order mark at the beginning of a long text', () => {
    const marked = `\ufeff${'x'.repeat(2_000)}`;
    expect(roundTrip([marked])).toEqual([marked]);
  });

  test.each([
    ['undefined', { a: undefined }],
    ['a lone surrogate', ['\ud800']],
    ['a number that is not finite', [Number.NaN]],
    ['a date', [new Date(0)]],
  ])('refuses %s instead of changing it', (_what, value) => {
    expect(() => encodePayload(value as unknown as Json)).toThrow(expect.objectContaining({ name: 'DocumentError' }));
  });

  test('is refused if it is cut anywhere or has trailing bytes', () => {
    const bytes = encoded({ text: 'ä'.repeat(1_100), other: 'b'.repeat(1_030), n: 1 });
    for (let length = 0; length < bytes.length; length++)
      expect(codeOf(() => decodePayload(bytes.subarray(0, length)))).toBe('bad-payload');
    expect(codeOf(() => decodePayload(Buffer.concat([bytes, Buffer.from([0])])))).toBe('bad-payload');
  });

  test('throws an error and nothing else for garbage', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        expect(codeOf(() => decodePayload(bytes))).toBe('bad-payload');
        expect(codeOf(() => decodePayload(Buffer.concat([Buffer.from([1]), bytes])))).toMatch(/bad-payload|no error/);
      }),
    );
  });

  test.each(['~7', '~', '~x', '~01', '~-1'])('refuses a reference %s to a missing text', (reference) => {
    const body = Buffer.from(JSON.stringify([reference]));
    const head = Buffer.alloc(9);
    head.writeUInt8(1);
    head.writeUInt32LE(body.length, 1);
    expect(codeOf(() => decodePayload(Buffer.concat([head, body])))).toBe('bad-payload');
  });

  test('names a later format', () => {
    const bytes = encoded([1]);
    bytes.writeUInt8(2);
    expect(() => decodePayload(bytes)).toThrow(/format is 2/);
  });
});
