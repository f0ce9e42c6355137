import { expect, test } from '@jest/globals';
import { PutOff } from '../../../src/values/put-off.js';

test('runs deferred work in order on demand, and by itself without demand', async () => {
  const late = new PutOff();
  const done: number[] = [];
  late.add(() => done.push(1));
  late.add(() => {
    // A nested request finds the earlier work done.
    late.now();
    done.push(2);
    late.add(() => done.push(3));
  });
  expect(done).toEqual([]);
  await Promise.resolve();
  expect(done).toEqual([]);
  late.now();
  expect(done).toEqual([1, 2, 3]);
  late.add(() => done.push(4));
  await new Promise<void>((resolve) => late.add(resolve));
  expect(done).toEqual([1, 2, 3, 4]);
});
