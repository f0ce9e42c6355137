import { hash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MASK } from '../../../src/redaction/mark.js';
import { distinctValues } from '../../../src/redaction/named-values.js';
import { parseMaskRules, TextMask } from '../../../src/redaction/text-mask.js';

const SECRET = 'Blue "Heron" costs 12,50 €/kg';

describe('hidden text', () => {
  const mask = new TextMask({ texts: [SECRET], patterns: parseMaskRules('/ticket-[0-9]{4}/').patterns });
  const written: readonly (readonly [string, (text: string) => string])[] = [
    ['as it is', (text) => text],
    ['in JSON', JSON.stringify],
    ['in JSON in JSON', (text) => JSON.stringify({ a: JSON.stringify({ b: text }) })],
    ['in base64', (text) => Buffer.from(text).toString('base64')],
    ['in base64 of addresses', (text) => Buffer.from(text).toString('base64url')],
    ['in hexadecimal', (text) => Buffer.from(text).toString('hex')],
    ['in an address', encodeURIComponent],
  ];

  test.each(written)('is found %s, wherever it begins', (_, form) => {
    for (const before of ['', 'a', 'ab', 'abc', 'abcd'])
      for (const behind of ['', 'x', 'xyz']) {
        const text = `start ${form(`${before}${SECRET}${behind}`)} end`;
        const shown = mask.masked(text);
        expect(shown).toContain(MASK);
        const decoded = [
          shown,
          ...(shown.match(/[\w+/=-]{6,}/g) ?? []).map((one) => Buffer.from(one, 'base64').toString()),
        ].join('\n');
        expect(decoded).not.toMatch(/Heron|costs/);
      }
  });

  test('is found by patterns, as known secrets, and cut off in the middle', () => {
    expect(mask.masked('see ticket-1234, ticket-12')).toBe(`see ${MASK}, ticket-12`);
    expect(mask.masked('password: hunter2hunter2')).not.toContain('hunter2');
    expect(mask.masked('and then Blue "Heron" cos…')).toBe(`and then ${MASK}`);
    expect(mask.masked('osts 12,50 €/kg and so on')).toBe(`${MASK} and so on`);
    expect(mask.masked('Blue sky')).toBe('Blue sky');
  });

  test.each([
    ['head: Blue "Heron" costs 12,5\n… 900 characters are not shown …\nend', /Heron/],
    ['head\n… 900 characters are not shown …\nn" costs 12,50 €/kg and so on', /costs/],
    ['the key is AKIAIOSFODNN7EXAMPL', /IOSF/],
    ['sk-proj-a1b2c3d4e\n[cut off]', /a1b2/],
    ['curl -H "X: Basic dXNlcjpwYXNz" here', /dXNl/],
    ['Proxy: Basic dXNlcjpwYXNz', /dXNl/],
  ])('is found cut off within a text, and in passwords of headers: %j', (text, secret) => {
    expect(mask.masked(text)).not.toMatch(secret);
  });

  test('is masked in the names and numbers of a value as in its text', () => {
    const value = {
      password: 'correct-horse',
      pin: 4711,
      at: { Authorization: 'Basic dXNlcjpwYXNz', pins: [4711, 12] },
      text: 'sk-learn',
      n: 1,
    };
    const numbers = new TextMask({ texts: ['4711', '"n":1'], patterns: [] });
    const made = numbers.maskedValue(value);
    expect(made).toMatchObject({ password: MASK, pin: MASK, text: 'sk-learn', n: MASK });
    expect(JSON.stringify(made)).not.toMatch(/horse|4711|dXNl/);
    expect(new TextMask({ texts: ['"a":"b","c"'], patterns: [] }).maskedValue({ a: 'b', c: 1 })).toEqual({
      [MASK]: MASK,
    });
    expect(mask.masked('Basic knowledge of sk-learn')).toBe('Basic knowledge of sk-learn');
  });

  test('is masked as a whole item where it stands alone, however short, with its hashes and base64', () => {
    const short = new TextMask({ texts: ['PIN4711'], words: ['k9-7', 'no'], patterns: [] });
    expect(short.masked('no')).toBe(MASK);
    expect(short.masked(' no\n')).toBe(MASK);
    expect(short.masked('say no to xk9-7, k9-77 and k9-7.')).toBe(`say no to xk9-7, k9-77 and ${MASK}.`);
    const basic = Buffer.from('PIN4711').toString('base64');
    expect(short.masked(`x ${basic} ${Buffer.from('k9-7').toString('base64')} y`)).toBe(`x ${MASK}== ${MASK} y`);
    for (const text of ['PIN4711', 'no', 'k9-7\n'])
      expect(short.masked(`it is ${hash('sha256', text)}`)).toBe(`it is ${MASK}`);
  });

  test('is found by half of a cut text, also in passwords of addresses', () => {
    const short = new TextMask({ texts: ['PIN4711'], patterns: [] });
    expect(short.masked('PIN4…')).toBe(MASK);
    expect(short.masked('omitted ...]\n4711 and so on')).toBe(`omitted ...]\n${MASK} and so on`);
    expect(short.masked('a PIN\n')).toBe('a PIN\n');
    expect(short.masked('clone https://me:hunter-se…')).toBe(`clone https://me:${MASK}…`);
    expect(short.masked('clone https://me:hunter-se')).toBe(`clone https://me:${MASK}`);
    for (const text of ['http://localhost:8080', 'http://localhost:8080/x', 'see http://a.b/c:d'])
      expect(short.masked(text)).toBe(text);
  });

  test('is masked once if it begins or ends like the mask, without an endless search', () => {
    expect(new TextMask({ texts: ['redacted]a'], patterns: [] }).masked('redac……')).toBe(`${MASK}……`);
    expect(new TextMask({ texts: ['a[redacted'], patterns: [] }).masked('……acted')).toBe(`……${MASK}`);
  });

  test('leaves all other text unchanged, and is stable under masking', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const plain = new TextMask({ texts: [SECRET], patterns: [] });
        const once = plain.masked(`${text}${SECRET}${text}`);
        return !once.includes(SECRET) && plain.masked(once) === once;
      }),
    );
  });

  test('includes repetitions of a distinct value of a secret name, as a separate word', () => {
    const text = 'Endpoint{Token: "my-token"}\nwantPass: "my-token"\nif p.Password != "explicit-token" {';
    const values = distinctValues(`${text}\nToken: "explicit-token",`);
    expect(values).toEqual(['my-token', 'explicit-token']);
    const repeated = new TextMask({ texts: [], values, patterns: [] });
    expect(repeated.masked(text)).toBe(`Endpoint{Token: "${MASK}"}\nwantPass: "${MASK}"\nif p.Password != "${MASK}" {`);
    expect(repeated.masked('my-tokens, xmy-token, explicit')).toBe('my-tokens, xmy-token, explicit');
    expect(repeated.maskedValue({ a: ['is my-token'] })).toEqual({ a: [`is ${MASK}`] });
  });

  test('has no repetitions of words, short values, references, paths, addresses, types and numbers', () => {
    for (const value of ['expiration', 'a-b-1', 'read only-1', '$API_KEY1', '/run/my-token', '~/my-token', '%s-%d-x'])
      expect([value, distinctValues(`password: "${value}"`)]).toEqual([value, []]);
    for (const value of ['http://a-b/c', 'token-store.json', 'uint64', 'sha-256', 'base64', '20261129', MASK])
      expect([value, distinctValues(`password: "${value}"`)]).toEqual([value, []]);
    for (const [text, values] of [
      ['API_KEY=abcDEF123456.', ['abcDEF123456']],
      ['{"a":"{\\"password\\": \\"my-token\\"}"}', ['my-token']],
      ['the token: re-used', []],
      ['password: config.api-key', []],
      ['<password>my-token</password>', ['my-token']],
    ] as const)
      expect([text, distinctValues(text)]).toEqual([text, values]);
  });

  test.each([
    ['/[/', /line 1 of the rules is not a pattern/],
    ['# ours\n\n/x*/', /line 3 of the rules matches empty text/],
    ['ab', /line 1 of the rules is shorter than 4 characters/],
  ])('is refused with unusable rules: %j', (text, told) => {
    expect(() => parseMaskRules(text)).toThrow(told);
  });
});
