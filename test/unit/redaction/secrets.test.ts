import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { withoutSecrets, withoutSecretValues } from '../../../src/redaction/secrets.js';
import { anyText } from '../../support/any-text.js';
import { cpuMsOf } from '../../support/cpu-time.js';
import { effort } from '../../support/effort.js';

/** Joins pieces, so that no scanner takes this file for a leak. */
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
  join('sk', '_live_', body),
  join('PASSWORD', '="first\n', body, '"'),
  join('"password"', ': "', body, ' cut off'),
  join('SECRET_KEY', '=', body),
  join('STRIPE_SECRET_KEY', '=', body),
  join('API_KEY_2', '=', body),
  join('DB_PASSWORD_PROD', '=', body),
  join('GITHUB_TOKEN_2', '=', body),
  join('database password', ': ', body),
  join('the api key', ' := "', body, '"'),
  join('password', " => '", body, "'"),
  join('postgres://user:a/', body, '@host/db'),
  join('postgres://user:a@', body, '@host/db'),
  join('postgres://user:', body.repeat(20), '@host/db'),
];

describe('secrets in a text', () => {
  test('are masked in every form and place, and masked text stays unchanged', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...SECRETS),
        anyText({ maxLength: 30 }),
        anyText({ maxLength: 30 }),
        (secret, before, behind) => {
          const masked = withoutSecrets(`${before}\n${secret}\n${behind}`);
          expect(masked).not.toContain(body);
          expect(masked).not.toContain('12345678');
          expect(masked).toContain('[redacted]');
          expect(withoutSecrets(masked)).toBe(masked);
        },
      ),
      { numRuns: effort(200, 3_000) },
    );
  });

  test('leave the rest of the text and texts without secrets unchanged', () => {
    const plain =
      'The secretary asked for max_tokens: 500 and a tokenizer; skip task-force-12, see https://example.org/a:b ' +
      'and src/password.ts.';
    expect(withoutSecrets(plain)).toBe(plain);
    expect(withoutSecrets(`user=bob, password=${body}, port=80`)).toBe('user=bob, password=[redacted], port=80');
    expect(withoutSecrets(`{"token":"${body}","n":1}`)).toBe('{"token":"[redacted]","n":1}');
  });

  test('are masked in JSON and in JSON within JSON texts, which stays the same JSON otherwise', () => {
    const nested = (value: unknown, depth: number): string =>
      depth < 0 ? (value as string) : nested(JSON.stringify(value), depth - 1);
    const read = (text: string, depth: number): unknown => (depth < 0 ? text : read(JSON.parse(text), depth - 1));
    const any = fc.stringMatching(/^[a-z"'\\\n ]{0,12}$/);
    fc.assert(
      fc.property(
        any,
        any,
        fc.integer({ min: 0, max: 4 }),
        fc.constantFrom('password', 'api_key_2', 'db secret key'),
        (a, b, depth, name) => {
          const text = nested({ n: 1, [name]: `${a}${body}${b}`, [`my ${name}`]: b || 'x', after: 'it stays' }, depth);
          const masked = withoutSecrets(text);
          expect(read(masked, depth)).toEqual({
            n: 1,
            [name]: '[redacted]',
            [`my ${name}`]: '[redacted]',
            after: 'it stays',
          });
          expect(withoutSecrets(masked)).toBe(masked);
          // The secret may be cut off at any place.
          const end = text.indexOf(body) + body.length;
          expect(withoutSecrets(text.slice(0, end))).not.toContain(body.slice(0, 4));
        },
      ),
      { numRuns: effort(300, 5_000) },
    );
  });

  test('are masked to the end of the line in an open quote, and the following lines stay', () => {
    expect(withoutSecrets(`{"password": "${body} cut\n{"a": 1}`)).toBe('{"password": "[redacted]\n{"a": 1}');
    expect(withoutSecrets(`password='${body}\nand so on`)).toBe("password='[redacted]\nand so on");
    expect(withoutSecrets(`PASSWORD="first\n${body}"\nPORT=80`)).toBe('PASSWORD="[redacted]"\nPORT=80');
    expect(withoutSecrets(`log "PASSWORD=\\"${body}" ok`)).toBe('log "PASSWORD=\\"[redacted]" ok');
  });

  test('are not found in counts, mere names, ports and paths of addresses', () => {
    for (const plain of [
      'token_count: 500, token_limit=80, tokens: 3, token_type: bearer',
      'http://localhost:8080/@scope/name and http://[::1]:80/a@b, mail me@example.org',
      'src/password.ts:12:3 and password.test.ts: failed',
    ])
      expect(withoutSecrets(plain)).toBe(plain);
    expect(withoutSecrets(`https://u:${body}@registry.example/@scope/name`)).toBe(
      'https://u:[redacted]@registry.example/@scope/name',
    );
  });

  test('are not found in code and scripts that only name a secret', () => {
    for (const text of [
      'token: e.Token,',
      'BasicAuth{Username: username, Password: password}',
      'password = values["password"]',
      'const apiKey = config.server?.apiKey;',
      'GITHUB_TOKEN=$GITSYNC_TOKEN',
      'export TOKEN="${DEPLOY_TOKEN}"',
    ])
      expect(withoutSecrets(text)).toBe(text);
    for (const text of [
      'password: mysecret,',
      'password: horse.battery',
      'password: $ecret_WORD',
      'TOKEN=$HOME_AND_MORE',
      'token: e.Token.x1',
    ])
      expect(withoutSecrets(text)).toContain('[redacted]');
  });

  test('are not found in placeholders of help texts and examples', () => {
    for (const text of [
      'sync --source-token ... --target-token ...',
      'usage: login [--token <TOKEN>] [--password=<your password>]',
      '  --token TOKEN      the token',
      'PASSWORD=... npm start',
      'API_KEY="..." and API_KEY=XXXX and `--password ...`',
      '{"password": "***", "token": "<token>"}',
      'password: …',
      '<password>...</password>',
    ])
      expect([text, withoutSecrets(text)]).toEqual([text, text]);
    for (const text of [
      'PASSWORD=...hidden-7',
      'PASSWORD=..7x ok',
      'token: <b4r9Zq>',
      'token=XXXYYZ',
      'PASSWORD=HORSE',
      '--token ABCDEF',
      'password: <a>word7',
      'password: "... and words"',
    ])
      expect([text, withoutSecrets(text)]).toEqual([text, expect.stringContaining('[redacted]')]);
  });

  test('are not found in format verbs, and in unquoted words of one or two letters', () => {
    for (const text of [
      't.Fatalf("write token: %v", err)',
      't.Fatalf("got token: %+v, password: %q.", a, b)',
      'Endpoint{Token: "%s"}',
      'password: {}',
      "f'password={0}'",
      'case "token":\n\tta',
    ])
      expect([text, withoutSecrets(text)]).toEqual([text, text]);
    for (const text of ['password: "ta"', 'token: %vx7', 'password: {a}', 'password=tax', 'password=a7'])
      expect([text, withoutSecrets(text)]).toEqual([text, expect.stringContaining('[redacted]')]);
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
        'database password': 'tiny',
        'API keys (old)': ['tiny'],
        token_count: 5,
        [`password=${body}`]: null,
      }),
    ).toEqual({
      password: '[redacted]',
      list: [{ apiKey: '[redacted]', note: 'Bearer [redacted]' }],
      pin_secret: '[redacted]',
      has_password: true,
      credentials: '[redacted]',
      tokens: '5',
      'database password': '[redacted]',
      'API keys (old)': '[redacted]',
      token_count: 5,
      'password=[redacted]': null,
    });
  });

  test.each([
    'token',
    'token\\',
    'password',
    'password_a1',
    '://a:',
    '://a:b@',
    'secret:',
    '-----BEGIN PRIVATE KEY-----',
    '"password": "',
    'password="',
    'password="\\',
    "password='a\n",
    'password=\\"a\n',
    'api key ',
    'sk-',
    'sk_live_',
    'eyJaaaaaaaa-',
    'eyJaaaaaaaa.',
    'Bearer ',
  ])('are masked behind any number of %j, in time linear in the text', (piece) => {
    const long = `${piece.repeat(100_000)}\npassword=${body}\n`;
    let masked = long;
    expect(
      cpuMsOf(() => {
        masked = withoutSecrets(long);
      }),
    ).toBeLessThan(5_000);
    expect(masked).toContain('[redacted]');
    expect(masked).not.toContain(body);
  });
});
