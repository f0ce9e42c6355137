import { describe, expect, test } from '@jest/globals';
import { parseDatabaseUrl } from '../../../src/node/postgres-url.js';

describe('the URL of a database', () => {
  test('names hosts, database and user; the password is separate', () => {
    expect(parseDatabaseUrl('postgresql://ctx@db.example/palimpsest')).toEqual({
      database: { hosts: [{ host: 'db.example', port: 5432 }], name: 'palimpsest', user: 'ctx', parameters: {} },
      password: undefined,
    });
    const all = parseDatabaseUrl(
      'postgres://a%40b:p%40ss%3Aw@one:1,[::1]:2,three/a%20b?sslmode=verify-full&sslrootcert=/etc/ca.crt',
    );
    expect(all).toEqual({
      database: {
        hosts: [
          { host: 'one', port: 1 },
          { host: '::1', port: 2 },
          { host: 'three', port: 5432 },
        ],
        name: 'a b',
        user: 'a@b',
        parameters: { sslmode: 'verify-full', sslrootcert: '/etc/ca.crt' },
      },
      password: 'p@ss:w',
    });
    // A password with an unescaped @ ends at the last one, as in libpq.
    expect(parseDatabaseUrl('postgresql://u:a@b@h/d')).toMatchObject({
      database: { hosts: [{ host: 'h' }] },
      password: 'a@b',
    });
  });

  test.each([
    ['', 'it does not'],
    ['mysql://u:s3cret@h/d', 'it does not'],
    ['postgresql://u:s3cret@h/d/e', 'it does not'],
    ['postgresql://h/d', 'no user'],
    ['postgresql://:s3cret@h/d', 'no user'],
    ['postgresql://u:s3cret@h', 'no database'],
    ['postgresql://u:s3cret@h:0/d', 'port 0'],
    ['postgresql://u:s3cret@h:99999/d', 'port 99999'],
    ['postgresql://u:s3cret@h s/d', 'a host'],
    ['postgresql://u:s3cret%zz@h/d', 'the password has a %'],
    ['postgresql://u:s3cret@h/d?sslmode=maybe', 'sslmode is one of'],
    ['postgresql://u:s3cret@h/d?sslrootcert=ca.crt', 'absolute path'],
    ['postgresql://u@h/d?password=s3cret', '--password-file'],
    ['postgresql://u@h/d?sslpassword=s3cret', '--password-file'],
    ['postgresql://u:s3cret@h/d?socketFactory=evil.Class', '"socketFactory"'],
  ])('is refused without being repeated: %s', (url, why) => {
    const refusal = expect.objectContaining({ code: 'log-unfit', message: expect.stringContaining(why) });
    expect(() => parseDatabaseUrl(url)).toThrow(refusal);
    expect(() => parseDatabaseUrl(url)).not.toThrow(/s3cret/);
  });
});
