import { describe, expect, test } from '@jest/globals';
import { describeAddress, parseNodeUrl, parseToken } from '../../../src/xtdb/address.js';
import { XtdbError } from '../../../src/xtdb/errors.js';

describe('the address of a remote node', () => {
  test.each([
    'http://db.example:3000',
    'http://db.example:3000/',
    'http://db.example:3000/_xtdb',
    'http://db.example:3000/_xtdb/',
  ])('has only its origin after parsing: %s', (text) => {
    expect(parseNodeUrl(text)).toEqual({ kind: 'url', origin: 'http://db.example:3000' });
  });

  test.each([
    ['https://db.example/x', { origin: 'https://db.example', prefix: '/x' }],
    ['https://db.example/x/y/', { origin: 'https://db.example', prefix: '/x/y' }],
    ['http://db.example:3000/x/_xtdb/', { origin: 'http://db.example:3000', prefix: '/x' }],
  ])('has a path before /_xtdb in %s', (text, parts) => {
    expect(parseNodeUrl(text)).toEqual({ kind: 'url', ...parts });
    expect(describeAddress(parseNodeUrl(text))).toBe(`${parts.origin}${parts.prefix}`);
  });

  test.each(['unix:/run/x y/db.sock', 'unix:///run/x y/db.sock'])('is a socket in %s', (text) => {
    expect(parseNodeUrl(text)).toEqual({ kind: 'unix', socketPath: '/run/x y/db.sock' });
  });

  test.each([
    '',
    'db:3000',
    'localhost',
    'file:///etc/passwd',
    'http://user:secret@db:3000',
    'unix:db.sock',
    'unix://host/db.sock',
    'unix:',
    'http://db:3000/x?token=secret',
    'http://db:3000?x=1',
    'http://db:3000#x',
  ])('is refused without being repeated: %j', (text) => {
    expect(() => parseNodeUrl(text)).toThrow(XtdbError);
    try {
      parseNodeUrl(text);
    } catch (error) {
      expect(String(error)).not.toContain('secret');
    }
  });

  test('never shows a token in its description', () => {
    expect(describeAddress({ kind: 'tcp', origin: 'http://127.0.0.1:1', token: 'secret' })).toBe('http://127.0.0.1:1');
    expect(describeAddress({ kind: 'url', origin: 'http://h', prefix: '/p', token: 'secret' })).toBe('http://h/p');
    expect(describeAddress({ kind: 'unix', socketPath: '/s', token: 'secret' })).toBe('unix:/s');
  });

  test('accepts a token of one word with white space around it, and repeats no invalid one', () => {
    expect(parseToken(' ey.J-w_t\r\n', 'f')).toBe('ey.J-w_t');
    for (const text of ['', ' \n', 'sec ret', 'secret\nx', 'secrét']) {
      expect(() => parseToken(text, 'the file f')).toThrow(/the file f/);
      expect(() => parseToken(text, 'the file f')).not.toThrow(/secr?/);
    }
  });
});
