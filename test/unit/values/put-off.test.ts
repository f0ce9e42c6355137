import { expect, test } from '@jest/globals';
import { PutOff } from '../../../src/values/put-off.js';

test('work that is put off is done in its order when somebody asks, and by itself where nobody does', async () => {
  const late = new PutOff();
  const done: number[] = [];
  late.add(() => done.push(1));
  late.add(() => {
    // Whoever asks from within finds what came before.
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
