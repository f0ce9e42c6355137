import { describe, expect, test } from '@jest/globals';
import { refusal } from '../../../src/http/request-checks.js';

const TOKEN = 'correct-horse-battery';
const good = { host: '127.0.0.1:7390', authorization: `Bearer ${TOKEN}` };

describe('requests to the HTTP server (decision H6)', () => {
  test.each([['127.0.0.1:7390'], ['127.0.0.1'], ['localhost:80'], ['LOCALHOST'], ['[::1]:7390']])(
    'come from this machine: Host %s',
    (host) => {
      expect(refusal({ headers: { ...good, host } }, TOKEN)).toBeUndefined();
    },
  );

  test.each([
    ['evil.example.com'],
    ['127.0.0.1.evil.example.com'],
    ['localhost@evil.example.com'],
    ['0.0.0.0:7390'],
    [''],
    ['not a host'],
    [undefined],
  ])('are refused with the Host %s', (host) => {
    expect(refusal({ headers: { ...good, host } }, TOKEN)?.status).toBe(403);
  });

  test.each([['https://evil.example.com'], ['null'], ['http://localhost.evil.example.com'], ['file://']])(
    'are refused with the Origin %s',
    (origin) => {
      expect(refusal({ headers: { ...good, origin } }, TOKEN)?.status).toBe(403);
    },
  );

  test('may come from a page of this machine', () => {
    expect(refusal({ headers: { ...good, origin: 'http://localhost:6274' } }, TOKEN)).toBeUndefined();
  });

  test.each([[undefined], ['Bearer wrong'], [`Basic ${TOKEN}`], [TOKEN], [`Bearer ${TOKEN}x`], ['Bearer ']])(
    'need the token: %s',
    (authorization) => {
      expect(refusal({ headers: { ...good, authorization } }, TOKEN)?.status).toBe(401);
    },
  );

  test('need no token where none is asked for', () => {
    expect(refusal({ headers: { host: 'localhost' } }, undefined)).toBeUndefined();
  });
});
