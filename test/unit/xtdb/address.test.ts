import { describe, expect, test } from '@jest/globals';
import { describeAddress, parseNodeUrl } from '../../../src/xtdb/address.js';
import { XtdbError } from '../../../src/xtdb/errors.js';

describe('the address of a foreign node', () => {
  test.each(['http://db.example:3000', 'http://db.example:3000/', 'http://db.example:3000/_xtdb', 'http://db.example:3000/_xtdb/'])(
    '%s',
    (text) => {
      expect(parseNodeUrl(text)).toEqual({ kind: 'url', origin: 'http://db.example:3000' });
    },
  );

  test.each([
    '',
    'db:3000',
    'localhost',
    'file:///etc/passwd',
    'http://user:secret@db:3000',
    'http://db:3000/other',
    'http://db:3000?x=1',
    'http://db:3000#x',
  ])('%j is refused, without repeating it', (text) => {
    expect(() => parseNodeUrl(text)).toThrow(XtdbError);
    try {
      parseNodeUrl(text);
    } catch (error) {
      expect(String(error)).not.toContain('secret');
    }
  });

  test('a token is never part of a description', () => {
    expect(describeAddress({ kind: 'tcp', origin: 'http://127.0.0.1:1', token: 'secret' })).toBe('http://127.0.0.1:1');
  });
});
