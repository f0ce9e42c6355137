import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { withoutSecrets, withoutSecretValues } from '../../../src/interop/secrets.js';
import { anyText } from '../../support/any-text.js';
import { effort } from '../../support/effort.js';

/** Made of pieces, so that no scanner takes this file for a leak. */
const join = (...parts: readonly string[]): string => parts.join('');
const body = 'Q7xZ2mK9vB4nT6wR1yL8';
const SECRETS: readonly string[] = [
  join('sk', '-', body),
  join('gh', 'p_', body),
  join('github', '_pat_', body),
  join('xox', 'b-', body),
  join('AK', 'IA', 'ABCDEFGH12345678'),
  join('Bearer ', body),
  join('-----BEGIN RSA ', 'PRIVATE KEY-----\n', body, '\n-----END RSA ', 'PRIVATE KEY-----'),
  join('-----BEGIN ', 'PRIVATE KEY-----\n', body),
  join('secret', ':team/', body),
  join('password', '=', body),
  join('"api_key"', ': "', body, ' with spaces"'),
  join('\\"db_password\\": \\"', body, ' and more\\"'),
  join("client_secret: '", body, "'"),
  join('GITHUB_TOKEN', '=', body),
  join('postgres://user:', body, '@host/db'),
  join('ey', 'Jhbgcioi12.', body, '.', body),
];

describe('secrets in a text', () => {
  test('are masked in every form, wherever they stand, and what is masked stays as it is', () => {
    fc.assert(
      fc.property(fc.constantFrom(...SECRETS), anyText({ maxLength: 30 }), anyText({ maxLength: 30 }), (secret, before, behind) => {
        const masked = withoutSecrets(`${before}\n${secret}\n${behind}`);
        expect(masked).not.toContain(body);
        expect(masked).not.toContain('12345678');
        expect(masked).toContain('[redacted]');
        expect(withoutSecrets(masked)).toBe(masked);
      }),
      { numRuns: effort(200, 3_000) },
    );
  });

  test('leave the rest of the text, and texts that hold none, as they are', () => {
    const plain =
      'The secretary asked for max_tokens: 500 and a tokenizer; skip task-force-12, see https://example.org/a:b and src/password.ts.';
    expect(withoutSecrets(plain)).toBe(plain);
    expect(withoutSecrets(`user=bob, password=${body}, port=80`)).toBe('user=bob, password=[redacted], port=80');
    expect(withoutSecrets(`{"token":"${body}","n":1}`)).toBe('{"token":"[redacted]","n":1}');
  });

  test('are masked in values by their name too', () => {
    expect(
      withoutSecretValues({
        password: 'tiny',
        list: [{ apiKey: 'x', note: `Bearer ${body}` }],
        pin_secret: 1234,
        has_password: true,
        credentials: { user: 'u', key: ['k'] },
        tokens: '5',
        [`password=${body}`]: null,
      }),
    ).toEqual({
      password: '[redacted]',
      list: [{ apiKey: '[redacted]', note: 'Bearer [redacted]' }],
      pin_secret: '[redacted]',
      has_password: true,
      credentials: { user: '[redacted]', key: ['[redacted]'] },
      tokens: '5',
      'password=[redacted]': null,
    });
  });

  test('of a long text take time in its length', () => {
    for (const piece of [
      'token',
      'password',
      '://a:',
      'secret:',
      '-----BEGIN PRIVATE KEY-----',
      '"password": "',
      'sk-',
      'eyJaaaaaaaa-',
      'eyJaaaaaaaa.',
    ]) {
      const long = piece.repeat(100_000);
      expect(withoutSecrets(long).length).toBeGreaterThan(0);
    }
  });
});
