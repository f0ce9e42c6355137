import { describe, expect, test } from '@jest/globals';
import { ANSWERS } from '../../../src/http/api-schemas.js';
import { ApiError, problemOf } from '../../../src/http/problem.js';
import { DocumentError } from '../../../src/objects/errors.js';
import { SessionError } from '../../../src/session/errors.js';
import { XtdbError } from '../../../src/xtdb/errors.js';

describe('problems [RFC 9457]', () => {
  test.each([
    [new ApiError('session-not-open', 'x'), 404, 'session-not-open'],
    [new SessionError('lease-held', 'process 7 has it'), 409, 'lease-held'],
    [new SessionError('unknown-session', 'x'), 404, 'unknown-session'],
    [new DocumentError('invalid-id', 'x'), 400, 'invalid-id'],
    [new XtdbError('unreachable', 'x'), 503, 'unreachable'],
  ])('keep the code of %s', (error, status, code) => {
    const problem = problemOf(error);
    expect(problem).toMatchObject({ status, code, detail: error.message, type: `urn:palimpsest:problem:${code}` });
    expect(ANSWERS.Problem.parse(problem)).toEqual(problem);
  });

  test('reveal nothing internal of an unknown failure', () => {
    for (const error of [new Error('secret'), Object.assign(new Error('secret'), { code: 'ENOENT' }), 'secret']) {
      expect(JSON.stringify(problemOf(error))).not.toContain('secret');
      expect(problemOf(error).status).toBe(500);
    }
  });
});
