import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from '@jest/globals';
import { WithoutThread } from '../../../../src/filesystem/access/without-thread.js';

test('stats files on the event loop for a few milliseconds per turn, then in threads', async () => {
  let now = 1_000;
  const without = new WithoutThread(
    () => true,
    () => now,
  );
  expect(without.may).toBe(true);
  now += 4;
  expect(without.may).toBe(true);
  now += 2;
  expect([without.may, without.may]).toEqual([false, false]);
  await nextTurn();
  expect(without.may).toBe(true);
});

test('uses threads for a minute after one slow answer, also after a slow error', async () => {
  let now = 1_000;
  const without = new WithoutThread(
    () => true,
    () => now,
  );
  const takes = (ms: number) => () => {
    now += ms;
    if (ms > 100) throw new Error('EIO');
    return ms;
  };
  expect(without.do(takes(40))).toBe(40);
  await nextTurn();
  expect(without.may).toBe(true);
  expect(without.do(takes(60))).toBe(60);
  await nextTurn();
  expect(without.may).toBe(false);
  now += 60_000;
  await nextTurn();
  expect(without.may).toBe(true);
  expect(() => without.do(takes(300))).toThrow('EIO');
  await nextTurn();
  expect(without.may).toBe(false);
});

test('always uses threads if a mount is not local', () => {
  expect(new WithoutThread(() => false).may).toBe(false);
});
