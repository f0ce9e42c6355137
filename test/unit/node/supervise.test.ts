import { describe, expect, test } from '@jest/globals';
import { judgeFrontExit, outlastsFailure, restartDelayMs } from '../../../src/node/supervise.js';

const starting = { wasReady: false, dataDir: '/data/x' };
const ready = { wasReady: true, dataDir: '/data/x' };

describe('the end of the JVM', () => {
  test('exit code 0 is a clean end, ready or not', () => {
    expect(judgeFrontExit({ code: 0, signal: null, tail: '' }, ready)).toEqual({ kind: 'clean' });
    expect(judgeFrontExit({ code: 0, signal: null, tail: '' }, starting)).toEqual({ kind: 'clean' });
  });

  test.each([
    ['corrupt-data', 'data-corrupt'],
    ['newer-data', 'data-newer'],
    ['no-space', 'no-space'],
    ['bind-failed', 'start-failed'],
    ['config-invalid', 'start-failed'],
    ['start-failed', 'start-failed'],
  ])('exit code 70 with %s fails as %s', (said, code) => {
    const verdict = judgeFrontExit({ code: 70, signal: null, tail: `a line\nfront: ${said}: CURRENT is cut off\nanother` }, ready);
    expect(verdict).toMatchObject({ kind: 'failed', error: { name: 'NodeError', code } });
    expect(verdict.kind === 'failed' && verdict.error.message).toMatch(/\/data\/x.*CURRENT is cut off\. \S/);
  });

  test('exit code 75 means that another process has the database', () => {
    expect(judgeFrontExit({ code: 75, signal: null, tail: '' }, ready)).toMatchObject({ kind: 'failed', error: { code: 'locked' } });
  });

  test('running out of memory is a crash of a ready node, and a failure of one that never was', () => {
    expect(judgeFrontExit({ code: 3, signal: null, tail: '' }, ready)).toEqual({ kind: 'crashed', reason: 'out of memory' });
    expect(judgeFrontExit({ code: 3, signal: null, tail: '' }, starting)).toMatchObject({
      kind: 'failed',
      error: { code: 'out-of-memory' },
    });
  });

  test('a full disk while starting is told as such, without the front saying so', () => {
    const tail = 'java.io.IOException: No space left on device';
    expect(judgeFrontExit({ code: 1, signal: null, tail }, starting)).toMatchObject({ kind: 'failed', error: { code: 'no-space' } });
  });

  test('any other exit of a ready node is a crash', () => {
    expect(judgeFrontExit({ code: 1, signal: null, tail: '' }, ready)).toEqual({ kind: 'crashed', reason: 'exit code 1' });
  });

  test('any other exit before it was ready is a failure that shows the last lines', () => {
    const verdict = judgeFrontExit({ code: 1, signal: null, tail: 'Unrecognized VM option' }, starting);
    expect(verdict).toMatchObject({ kind: 'failed', error: { code: 'start-failed' } });
    expect(verdict.kind === 'failed' && verdict.error.message).toContain('Unrecognized VM option');
  });

  test('a killed JVM is started again even if it was not ready', () => {
    expect(judgeFrontExit({ code: null, signal: 'SIGKILL', tail: '' }, starting)).toEqual({ kind: 'crashed', reason: 'signal SIGKILL' });
  });

  test.each([
    ['log-unreachable', 'postgres', true],
    ['start-failed', 'postgres', true],
    ['start-failed', 'kafka', true],
    ['start-failed', 'rocksdb', false],
    ['log-mismatch', 'postgres', false],
    ['log-denied', 'kafka', false],
    ['data-corrupt', 'kafka', false],
  ] as const)('a node that was ready before and fails with %s (%s) is tried again: %s', (code, profile, isTried) => {
    expect(outlastsFailure(code, profile)).toBe(isTried);
  });

  test('the delay grows from nothing to half a minute', () => {
    expect([1, 2, 3, 4, 7, 8, 9, 50].map(restartDelayMs)).toEqual([0, 500, 1000, 2000, 16_000, 30_000, 30_000, 30_000]);
  });
});
