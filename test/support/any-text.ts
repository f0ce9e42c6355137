import fc, { type Arbitrary, type StringConstraints } from 'fast-check';

const SURROGATES = 0x800;
const FIRST_SURROGATE = 0xd800;

/** Any character except lone surrogates. */
const character = fc.integer({ min: 0, max: 0x10ffff - SURROGATES }).map(
  (n) => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES),
  (text) => {
    const code = typeof text === 'string' ? text.codePointAt(0) : undefined;
    if (code === undefined || String.fromCodePoint(code) !== text) throw new Error('not one character');
    return code < FIRST_SURROGATE ? code : code - SURROGATES;
  },
);

/**
 * Any encodable text. Equals fast-check's `unit: 'binary'`, which first builds a table of all
 * characters. That costs a second of CPU time in each file that uses it.
 */
export const anyText = (constraints: Omit<StringConstraints, 'unit'> = {}): Arbitrary<string> =>
  fc.string({ unit: character, ...constraints });
