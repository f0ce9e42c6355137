import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { maskedBody } from '../../../src/client/record-mask.js';
import { withoutPublishedForms } from '../../../src/redaction/published-rules.js';
import { withoutForms } from '../../../src/redaction/secret-forms.js';
import { withoutNamedValues } from '../../../src/redaction/secret-names.js';
import { type FoundSecrets, marksIn } from '../../../src/redaction/stored-marks.js';
import { StoredMask } from '../../../src/redaction/stored-mask.js';
import { parseMaskRules } from '../../../src/redaction/text-mask.js';
import { seededTexts } from '../../support/made-secrets.js';

const key = Buffer.alloc(32, 7);
const mask = new StoredMask({ key, level: 'known' });
const strict = new StoredMask({ key, level: 'strict' });
const SEEDED = seededTexts();

const linesOf = (path: string): readonly string[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
const linesBelow = (folder: string, name: RegExp): readonly string[] =>
  readdirSync(folder, { recursive: true })
    .map(String)
    .filter((one) => name.test(one))
    .sort()
    .flatMap((one) => linesOf(join(folder, one)));

/** Each line of a secret is long enough to be recognised by itself. */
const shows = (text: string, secret: string): boolean => secret.split('\n').some((line) => text.includes(line));

describe('the mask of what is stored', () => {
  test('knows 200 secrets of 40 kinds, in each text around them', () => {
    expect([SEEDED.length, new Set(SEEDED.map(({ kind }) => kind)).size]).toEqual([200, 40]);
    expect(SEEDED.filter(({ text, secret }) => shows(mask.text(text), secret)).map(({ text }) => text)).toEqual([]);
  });

  test('finds them in one long text, in JSON and in nested values as well', () => {
    const whole = SEEDED.map(({ text }) => `${'ordinary words of a line\n'.repeat(90)}${text}\n`).join('');
    const stored = mask.text(whole);
    const nested = JSON.stringify(mask.value({ list: [{ deep: SEEDED.map(({ text }) => text) }] }));
    const json = mask.text(JSON.stringify({ body: SEEDED.map(({ text }) => JSON.stringify({ text })) }));
    for (const made of [stored, nested, json])
      expect(SEEDED.filter(({ secret }) => shows(made, secret)).map(({ text }) => text)).toEqual([]);
  });

  test('finds names in capitals beside a letter that is longer in lower case', () => {
    expect(mask.text('İstanbul\nPASSWORD: s3cr3tPa55\n')).toBe(`İstanbul\nPASSWORD: ${mask.mark('s3cr3tPa55')}\n`);
  });

  test('masks lines of a text that was just masked as if they stood alone', () => {
    const code = readFileSync('src/client/record-mask.ts', 'utf8');
    const whole = SEEDED.map(({ text }, i) => `${code.slice(i * 20, i * 20 + 150)}\n${text}\n`).join('');
    const starts = [...whole.matchAll(/\n/g)].map(({ index }) => index + 1);
    for (let i = 0; i < 24; i += 1) {
      const from = i < 6 ? 0 : (starts[(i * 37) % starts.length] ?? 0);
      const line = starts.filter((at) => at > from + 4_096)[(i * 53) % 90] ?? whole.length;
      // The part ends behind a line end, before a line end, or within a line.
      const part = whole.slice(from, i % 3 === 0 ? line : i % 3 === 1 ? line - 1 : line - 9);
      const [both, alone] = [new StoredMask({ key, level: 'known' }), new StoredMask({ key, level: 'known' })];
      const [found, own]: FoundSecrets[] = [new Map(), new Map()];
      both.text(whole);
      expect([both.text(part, found), found]).toEqual([alone.text(part, own), own]);
    }
  });

  test('masks values of secret names in arguments, and elements after a flag', () => {
    expect(
      mask.value({
        env: { DB_PASSWORD: 's3cr3tPa55', HOME: '/home/u' },
        argv: ['--password', 's3cr3tPa55', '--verbose'],
        set: [{ name: 'API_TOKEN', value: 's3cr3tPa55' }],
      }),
    ).toEqual({
      env: { DB_PASSWORD: mask.mark('s3cr3tPa55'), HOME: '/home/u' },
      argv: ['--password', mask.mark('s3cr3tPa55'), '--verbose'],
      set: [{ name: 'API_TOKEN', value: mask.mark('s3cr3tPa55') }],
    });
  });

  test('keeps marks of any data folder as values of secret names', () => {
    const named = mask.value({ API_KEY: 's3cr3tPa55', argv: ['--password', 's3cr3tPa55'] });
    expect(new StoredMask({ key: Buffer.alloc(32, 8), level: 'known' }).value(named)).toEqual(named);
  });

  test('gives equal secrets equal marks under one key, and different marks under another', () => {
    const [first] = SEEDED;
    const other = new StoredMask({ key: Buffer.alloc(32, 8), level: 'known' });
    const [a, b] = [`x ${first?.secret}`, `y: ${first?.secret}`];
    expect(marksIn(mask.text(a))).toEqual(marksIn(mask.text(b)));
    expect(marksIn(mask.text(a))).toHaveLength(1);
    expect(marksIn(other.text(a))).not.toEqual(marksIn(mask.text(a)));
    expect(mask.mark('AKIA0123456789ABCDEF')).toMatch(/^⟦masked:aws-key:[0-9a-f]{12}⟧$/);
  });

  test('keeps the pieces of a body, unless a secret spans two of them', () => {
    const plain = ['{"messages":[', '{"role":"user"},', '{"role":"assistant"}]}'];
    expect(maskedBody(mask, plain)).toEqual(plain);
    const inside = maskedBody(mask, [...plain, '{"password":"s3cr3tPa55"}']);
    expect(inside).toEqual([...plain, `{"password":"${mask.mark('s3cr3tPa55')}"}`]);
    const spanning = ['[', '{"password":"', 's3cr3tPa55"}', ']'];
    expect(maskedBody(mask, spanning)).toEqual([`[{"password":"${mask.mark('s3cr3tPa55')}"}]`]);
  });

  test('changes nothing when it masks twice, and returns the secrets behind its marks', () => {
    for (const { text } of SEEDED) {
      const found: FoundSecrets = new Map();
      const stored = mask.text(text, found);
      expect(mask.text(stored)).toBe(stored);
      expect(stored.replace(/⟦[^⟧]*⟧/g, (mark) => found.get(mark) ?? mark)).toBe(text);
    }
  });

  test('leaves signatures and encrypted fields of a request as they are', () => {
    const body = JSON.stringify({
      type: 'thinking',
      signature: `ErUB${'aB3+/'.repeat(60)}==`,
      encrypted_content: `gAAA${'Zz9_-'.repeat(80)}`,
    });
    expect(mask.text(body)).toBe(body);
  });

  const detectors: Readonly<Record<string, readonly [mask: (text: string) => string, most: number]>> = {
    "secretlint's rules": [withoutPublishedForms, 2],
    'known forms': [withoutForms, 2],
    'names of secrets': [withoutNamedValues, 50],
    'all of them, as they mask records': [(text) => mask.text(text), 2],
    'all of them with --mask strict': [(text) => strict.text(text), 20],
  };
  const ordinary: Readonly<Record<string, readonly string[]>> = {
    code: linesBelow('src', /\.ts$/),
    'prose, and hashes of packages': [...linesBelow('docs', /\.md$/), ...linesOf('package-lock.json')],
  };
  test.each(Object.entries(detectors))('%s: masks almost none of 10,000 ordinary lines', (_, [masked, most]) => {
    for (const [kind, lines] of Object.entries(ordinary)) {
      const some = lines.slice(0, 10_000);
      const changed = some.filter((line) => masked(line) !== line).length;
      expect({ kind, lines: some.length, few: changed <= most }).toEqual({ kind, lines: 10_000, few: true });
    }
  });

  test('keeps placeholders and code behind secret names, and masks words there only if it is strict', () => {
    for (const text of ['password = getPassword()', 'token: string', 'API_KEY=<your key>', 'secret: $X'])
      expect(mask.text(text)).toBe(text);
    expect(mask.text('password: correct-horse')).toBe('password: correct-horse');
    expect(strict.text('password: correct-horse')).toMatch(/^password: ⟦masked:/);
  });

  test('masks the texts and patterns of its user', () => {
    const own = new StoredMask({ key, level: 'known', rules: parseMaskRules('Project Nightjar\n/case-\\d{4}/\n') });
    expect(own.text('Project Nightjar is case-1234.')).toBe(
      `${own.mark('Project Nightjar')} is ${own.mark('case-1234')}.`,
    );
  });
});
