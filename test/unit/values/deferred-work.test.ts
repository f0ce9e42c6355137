import { expect, test } from '@jest/globals';
import { DeferredWork } from '../../../src/values/deferred-work.js';

test('runs deferred work in order on demand, and by itself without demand', async () => {
  const deferred = new DeferredWork();
  const done: number[] = [];
  deferred.add(() => done.push(1));
  deferred.add(() => {
    // A nested request finds the earlier work done.
    deferred.flush();
    done.push(2);
    deferred.add(() => done.push(3));
  });
  expect(done).toEqual([]);
  await Promise.resolve();
  expect(done).toEqual([]);
  deferred.flush();
  expect(done).toEqual([1, 2, 3]);
  deferred.add(() => done.push(4));
  await new Promise<void>((resolve) => deferred.add(resolve));
  expect(done).toEqual([1, 2, 3, 4]);
});
