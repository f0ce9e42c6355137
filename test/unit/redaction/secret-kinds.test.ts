import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { withoutSecrets, withoutSecretValues } from '../../../src/redaction/secrets.js';
import { TextMask } from '../../../src/redaction/text-mask.js';
import { cpuMsOf } from '../../support/cpu-time.js';

/** Joins pieces, so that no scanner takes this file for a leak. */
const join = (...parts: readonly string[]): string => parts.join('');
const hex = (count: number): string => '3f9a1c7be2048d65'.repeat(8).slice(0, count);
const any = (count: number): string => 'Q7xZ2mK9vB4nT6wR1yL8'.repeat(12).slice(0, count);
const high = (count: number): string => any(count).toUpperCase();
const uuid = '3f9a1c7b-e204-8d65-3f9a-1c7be2048d65';

/** Secrets of many kinds, each with the part that must not remain. */
const KINDS: Readonly<Record<string, string>> = {
  'an access key of AWS': join('AK', 'IA', high(16)),
  'a temporary key of AWS': join('AS', 'IA', high(16)),
  'a key of Google': join('AI', 'za', any(35)),
  'a client secret of Google': join('GOC', 'SPX-', any(28)),
  'an access token of Google': join('ya', '29.', any(60)),
  'a client secret of Entra': join('a1B', '8', 'Q~', any(34)),
  'a token of GitHub': join('gh', 'p_', any(36)),
  'a fine-grained token of GitHub': join('github', '_pat_', any(82)),
  'a token of GitLab': join('gl', 'pat-', any(20)),
  'a runner token of GitLab': join('gl', 'rt-', any(20)),
  'a token of Atlassian': join('AT', 'ATT3', any(60)),
  'a token of npm': join('np', 'm_', any(36)),
  'a token of PyPI': join('py', 'pi-', any(80)),
  'a token of RubyGems': join('ruby', 'gems_', hex(48)),
  'a token of Docker': join('dck', 'r_pat_', any(27)),
  'a bot token of Slack': join('xo', 'xb-123456789012-123456789012-', any(24)),
  'an app token of Slack': join('xa', 'pp-1-A1B2C3-123456-', hex(40)),
  'a bot token of Discord': join('M', any(25), '.', any(6), '.', any(38)),
  'a bot token of Telegram': join('1234567890', ':AA', any(33)),
  'a key of Twilio': join('S', 'K', hex(32)),
  'a key of SendGrid': join('S', 'G.', any(22), '.', any(43)),
  'a key of Mailgun': join('ke', 'y-', hex(32)),
  'a key of Mailchimp': join(hex(32), '-us', '12'),
  'a key of Stripe': join('rk', '_live_', any(24)),
  'a webhook key of Stripe': join('wh', 'sec_', any(32)),
  'a token of Square': join('sq', '0atp-', any(22)),
  'a token of Shopify': join('sh', 'pat_', hex(32)),
  'a token of DigitalOcean': join('do', 'p_v1_', hex(64)),
  'a token of Heroku': join('HR', 'KU-', any(60)),
  'a token of Databricks': join('da', 'pi', hex(32)),
  'a token of Supabase': join('sb', 'p_', hex(40)),
  'a password of PlanetScale': join('psc', 'ale_pw_', any(43)),
  'a token of Vault': join('hv', 's.', any(90)),
  'a token of Terraform': join(any(14), '.atlas', 'v1.', any(64)),
  'a token of Doppler': join('dp', '.pt.', any(43)),
  'a token of Pulumi': join('pu', 'l-', hex(40)),
  'a key of age': join('AGE-SECRET', '-KEY-1', high(58)),
  'a key of Tailscale': join('ts', 'key-auth-', any(17)),
  'a key of OpenAI': join('s', 'k-proj-', any(60)),
  'a key of Anthropic': join('s', 'k-ant-api03-', any(93), 'AA'),
  'a key of Groq': join('gs', 'k_', any(52)),
  'a token of Hugging Face': join('h', 'f_', any(34)),
  'a token of Replicate': join('r', '8_', any(37)),
  'a key of Linear': join('lin', '_api_', any(40)),
  'a token of Notion': join('nt', 'n_', any(46)),
  'a token of Figma': join('fi', 'gd_', any(40)),
  'a token of Airtable': join('pa', 't', any(14), '.', hex(64)),
  'a token of HubSpot': join('pat', '-na1-', uuid),
  'a token of Sentry': join('sntr', 'yu_', hex(64)),
  'a token of Grafana': join('gl', 'sa_', any(32), '_', hex(8)),
  'a key of New Relic': join('NR', 'AK-', high(27)),
  'a key of Postman': join('PM', 'AK-', hex(24), '-', hex(34)),
  'a token of Dynatrace': join('dt', '0c01.', high(24), '.', high(64)),
  'a JSON Web Token': join('ey', 'J', any(20), '.ey', 'J', any(30), '.', any(43)),
  'a hash of a password': join('$2', 'b$12$', any(53)),
  'a hash of a system': join('$', '6$', any(12), '$', any(86)),
  'an encoded private key': join('LS0tLS1CRUdJTi', 'BSU0EgUFJJVkFUR', any(80)),
};

/** Places for a secret without a recognisable form; § stands for it. */
const PLACES: readonly string[] = [
  'password: §',
  'password = §',
  'DB_PASS=§',
  'export MYSQL_PWD=§',
  '{"password":["§"]}',
  '{"password":["a","§"],"n":1}',
  '{"password":{"primary":{"value":"§"}},"n":1}',
  '{\n  "credentials": {\n    "user": "u",\n    "keys": [\n      "§"\n    ]\n  }\n}',
  '{"a":"{\\"passwords\\":[\\"§\\"],\\"n\\":1}"}',
  'password: [§, other]',
  'credentials: {user: u, key: §}',
  'password:\n  - other\n  - §\n',
  'password:\n- §\n',
  'secrets:\n  first:\n    value: §\n  second: x\n',
  'api_key: |\n  other\n\n  §\n',
  'api_key: >-\n  §\n',
  '- name: one\n  passphrase: &anchor |2-\n      §\n',
  'passphrase: correct horse §',
  '{"content":"api_key: |\\n  §\\nport: 80"}',
  '{"content":"password:\\n  - §\\nport: 80"}',
  'PASSWORDS = (\n    "other",\n    "§",\n)',
  'password = """\n§\n"""',
  'password = b"§"',
  'password = str("§")',
  'PASSWORD=other"§"',
  'secret = os.environ.get("NAME", "§")',
  'env:\n  - name: DB_PASSWORD\n    value: §\n',
  '{"name": "DB_PASSWORD", "value": "§"}',
  'name="api_key" value="§"',
  '<password>§</password>',
  '<client-secret type="text">§</client-secret>',
  'ENV API_KEY §',
  'tool --password § --other',
  'tool --api-key "§"',
  '["tool", "--auth-token", "§"]',
  'curl -u user:§ https://host.example/',
  'curl --user "user:§" https://host.example/',
  'mysql -u root -p§ database',
  'docker login -u user -p § registry.example',
  'sshpass -p § ssh host',
  'redis-cli -h host -a § ping',
  'openssl rsa -passin pass:§',
  'machine host.example login user password §',
  'machine host.example\n  login user\n  password §\n',
  'host.example:5432:database:user:§',
  'Authorization: token §',
  'Authorization: §',
  '"Authorization": "Bearer §"',
  'X-Api-Key: §',
  'X-Vault-Token: §',
  'Cookie: theme=dark; session=§',
  'Set-Cookie: sid=§; HttpOnly',
  'https://user:§@host.example/path',
  'postgres://user:§@host/db',
  'https://host.example/?access_token=§',
  'https://account.blob.example/c?sv=1&sig=§',
  'https://hooks.slack.com/services/T0123/B0123/§',
  'https://discord.com/api/webhooks/123456789/§',
  'Server=db;Uid=sa;Pwd=§;',
  'DefaultEndpointsProtocol=https;AccountName=a;AccountKey=§;EndpointSuffix=x',
  "CREATE USER u IDENTIFIED BY '§'",
  "ALTER ROLE u WITH PASSWORD '§'",
  'kind: Secret\nmetadata: {}\ndata:\n  anything: §\n',
  '//registry.example/:_authToken=§',
  '-----BEGIN OPENSSH PRIVATE KEY-----\n§\n-----END OPENSSH PRIVATE KEY-----',
  '-----BEGIN PGP PRIVATE KEY BLOCK-----\n§\n-----END PGP PRIVATE KEY BLOCK-----',
  'PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 1\n§\nPrivate-MAC: 00',
];
const SAID = join(any(12), hex(12));

describe('secrets of known forms', () => {
  test.each(Object.entries(KINDS))('masks %s, alone, in a list, in a call and in JSON within JSON', (_, secret) => {
    for (const text of [
      secret,
      `see ${secret}, and`,
      `"${secret}"`,
      `KEY=${secret};`,
      `f('${secret}')`,
      JSON.stringify(JSON.stringify([secret])),
    ]) {
      const masked = withoutSecrets(text);
      expect(masked).toContain('[redacted]');
      expect(masked).not.toContain(secret.slice(-10));
      expect(withoutSecrets(masked)).toBe(masked);
    }
    expect(JSON.stringify(withoutSecretValues({ a: [{ b: secret, [secret]: 1 }] }))).not.toContain(secret.slice(-10));
  });

  test.each(PLACES)('masks a value that its place reveals: %j', (place) => {
    const text = `before it\n${place.replace('§', SAID)}\nafter: it\n`;
    const masked = withoutSecrets(text);
    expect(masked).not.toContain(SAID.slice(0, 6));
    expect(masked).not.toContain(SAID.slice(-6));
    expect(masked).toMatch(/^before it\n[\s\S]*\nafter: it\n$/);
    expect(withoutSecrets(masked)).toBe(masked);
  });

  test('keeps JSON valid, and the members around a masked one', () => {
    for (const secret of [['S'], { a: ['S', 1] }, 'S', 12.5, [[['S']]]])
      for (const space of [undefined, 2]) {
        const text = JSON.stringify(
          { n: 1, password: secret, after: 'it stays', deep: [{ api_keys: secret, m: null }] },
          null,
          space,
        );
        const shown = { n: 1, password: '[redacted]', after: 'it stays', deep: [{ api_keys: '[redacted]', m: null }] };
        expect(JSON.parse(withoutSecrets(text))).toEqual(shown);
        expect(JSON.parse(JSON.parse(withoutSecrets(JSON.stringify(text))))).toEqual(shown);
        expect(withoutSecretValues(JSON.parse(text))).toEqual(shown);
        expect(new TextMask({ texts: [], patterns: [] }).maskedValue(JSON.parse(text))).toEqual(shown);
      }
  });

  test('masks values that other members or elements declare secret', () => {
    expect(
      withoutSecretValues({
        env: [
          { name: 'DB_PASSWORD', value: 'S' },
          { name: 'PORT', value: '80' },
        ],
        command: ['tool', '--password', 'S', '--port', '80', '--password-file', '/run/x'],
        object: { kind: 'Secret', data: { any: 'S' } },
        map: { kind: 'ConfigMap', data: { any: 'shown' } },
        has_password: true,
        password: null,
      }),
    ).toEqual({
      env: [
        { name: 'DB_PASSWORD', value: '[redacted]' },
        { name: 'PORT', value: '80' },
      ],
      command: ['tool', '--password', '[redacted]', '--port', '80', '--password-file', '/run/x'],
      object: { kind: 'Secret', data: '[redacted]' },
      map: { kind: 'ConfigMap', data: { any: 'shown' } },
      has_password: true,
      password: null,
    });
  });

  test('shows nothing of a nested value that was cut off anywhere', () => {
    const whole = `{"n":1,"password":{"a":["${SAID}","${SAID}"]}}`;
    for (let end = whole.indexOf(SAID) + 4; end < whole.length; end++)
      expect(withoutSecrets(whole.slice(0, end))).not.toContain(SAID.slice(0, 4));
  });

  test('keeps flags without values, ports, calls without secrets, and mere names of secrets', () => {
    for (const plain of [
      'docker run -u 1000:1000 image',
      'docker login --password-stdin registry.example',
      '{"has_password": true, "password": null}',
      'the hash 3f9a1c7be2048d653f9a1c7be2048d65 of a1b2c3d4-1111-2222-3333-444455556666',
      'hf_tokenizer_of_some_language_model, sk-learn, key-value-store-of-many-words',
      'Cookie: none. Authorization: required here',
    ])
      expect(withoutSecrets(plain)).toBe(plain);
  });

  test('masks at most 1 of 100 lines of ordinary sources by mistake', () => {
    const folder = new URL('../../../src/', import.meta.url);
    let [lines, masked] = [0, 0];
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
      if (!name.endsWith('.ts') || name.startsWith('redaction')) continue;
      const text = readFileSync(new URL(name, folder), 'utf8');
      const left = new Set(withoutSecrets(text).split('\n'));
      lines += text.split('\n').length;
      masked += text.split('\n').filter((line) => !left.has(line)).length;
    }
    expect(lines).toBeGreaterThan(10_000);
    expect(masked / lines).toBeLessThan(0.01);
  });

  test.each([
    'password:\n ',
    'password: &&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&&& ',
    'password={',
    'password: {"',
    "password=a('",
    '"password":[',
    'api_key: |\n',
    '<password>',
    '--password ',
    'ENV password ',
    'name: password\n',
    'kind: Secret\ndata:\n',
    'mysql -p',
    'docker login ',
    'login a ',
    'Cookie: a=',
    'Authorization: ',
    'xoxb-a-',
    'SG.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.',
    'https://u:',
    '\\"',
    '{"password":"\\\\',
  ])('takes time linear in any number of %j', (piece) => {
    const text = piece.repeat(Math.ceil(200_000 / piece.length));
    expect(cpuMsOf(() => withoutSecrets(text))).toBeLessThan(3_000);
  });

  test('masks only once in any surroundings', () => {
    const pieces = [
      ...PLACES.map((place) => place.replace('§', SAID)),
      '{',
      '}',
      '"',
      "'",
      '\n',
      '  ',
      '\\',
      '[',
      ']',
      ':',
      '=',
    ];
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...pieces), { maxLength: 6 }), (parts) => {
        const once = withoutSecrets(parts.join('\n'));
        expect(withoutSecrets(once)).toBe(once);
      }),
      { numRuns: 500 },
    );
  });
});
