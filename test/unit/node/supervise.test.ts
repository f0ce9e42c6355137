import { describe, expect, test } from '@jest/globals';
import { judgeFrontExit, outlastsFailure, restartDelayMs } from '../../../src/node/supervise.js';

const starting = { wasReady: false, dataDir: '/data/x' };
const ready = { wasReady: true, dataDir: '/data/x' };

describe('the end of the JVM', () => {
  test('is clean with exit code 0, ready or not', () => {
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
  ])('fails with exit code 70 and %s as %s', (said, code) => {
    const verdict = judgeFrontExit(
      { code: 70, signal: null, tail: `a line\nfront: ${said}: CURRENT is cut off\nanother` },
      ready,
    );
    expect(verdict).toMatchObject({ kind: 'failed', error: { name: 'NodeError', code } });
    expect(verdict.kind === 'failed' && verdict.error.message).toMatch(/\/data\/x.*CURRENT is cut off\. \S/);
  });

  test('means with exit code 75 that another process has the database', () => {
    expect(judgeFrontExit({ code: 75, signal: null, tail: '' }, ready)).toMatchObject({
      kind: 'failed',
      error: { code: 'locked' },
    });
  });

  test('is a crash of a ready node out of memory, and a failure of one that never was', () => {
    expect(judgeFrontExit({ code: 3, signal: null, tail: '' }, ready)).toEqual({
      kind: 'crashed',
      reason: 'out of memory',
    });
    expect(judgeFrontExit({ code: 3, signal: null, tail: '' }, starting)).toMatchObject({
      kind: 'failed',
      error: { code: 'out-of-memory' },
    });
  });

  test('is reported as a full disk at start, even if the front does not say so', () => {
    const tail = 'java.io.IOException: No space left on device';
    expect(judgeFrontExit({ code: 1, signal: null, tail }, starting)).toMatchObject({
      kind: 'failed',
      error: { code: 'no-space' },
    });
  });

  test('is a crash of a ready node with any other exit code', () => {
    expect(judgeFrontExit({ code: 1, signal: null, tail: '' }, ready)).toEqual({
      kind: 'crashed',
      reason: 'exit code 1',
    });
  });

  test('is a failure with the last lines for any other exit before it was ready', () => {
    const verdict = judgeFrontExit({ code: 1, signal: null, tail: 'Unrecognized VM option' }, starting);
    expect(verdict).toMatchObject({ kind: 'failed', error: { code: 'start-failed' } });
    expect(verdict.kind === 'failed' && verdict.error.message).toContain('Unrecognized VM option');
  });

  test('restarts a killed JVM even if it was not ready', () => {
    expect(judgeFrontExit({ code: null, signal: 'SIGKILL', tail: '' }, starting)).toEqual({
      kind: 'crashed',
      reason: 'signal SIGKILL',
    });
  });

  test.each([
    ['log-unreachable', 'postgres', true],
    ['start-failed', 'postgres', true],
    ['start-failed', 'kafka', true],
    ['start-failed', 'rocksdb', false],
    ['log-mismatch', 'postgres', false],
    ['log-denied', 'kafka', false],
    ['data-corrupt', 'kafka', false],
  ] as const)('retries a node that was ready before and fails with %s (%s): %s', (code, profile, isTried) => {
    expect(outlastsFailure(code, profile)).toBe(isTried);
  });

  test('delays a restart from nothing to half a minute', () => {
    expect([1, 2, 3, 4, 7, 8, 9, 50].map(restartDelayMs)).toEqual([0, 500, 1000, 2000, 16_000, 30_000, 30_000, 30_000]);
  });
});
