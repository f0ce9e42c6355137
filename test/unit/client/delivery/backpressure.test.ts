import { describe, expect, test } from '@jest/globals';
import { Backpressure } from '../../../../src/client/delivery/delivery-gate.js';

function backpressure(count: number): Backpressure {
  const made = new Backpressure();
  for (let i = 0; i < count; i++) made.enter();
  return made;
}

describe('backpressure', () => {
  test('blocks no producer while few writes are pending', async () => {
    await expect(backpressure(3).atMost(3)).resolves.toBeUndefined();
  });

  test('releases each producer at its own queue limit', async () => {
    const queue = backpressure(5);
    const came: string[] = [];
    const waits = [queue.atMost(3).then(() => came.push('three')), queue.atMost(0).then(() => came.push('none'))];
    queue.leave();
    await Promise.resolve();
    expect(came).toEqual([]);
    queue.leave();
    await waits[0];
    expect(came).toEqual(['three']);
    for (let i = 0; i < 3; i++) queue.leave();
    await waits[1];
    expect(came).toEqual(['three', 'none']);
    expect(queue.count).toBe(0);
  });
});
