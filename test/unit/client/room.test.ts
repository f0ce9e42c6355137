import { describe, expect, test } from '@jest/globals';
import { Room } from '../../../src/client/delivery/room.js';

describe('room in a queue', () => {
  test('is there at once for as many as may wait', async () => {
    await expect(new Room().of(3, 3)).resolves.toBeUndefined();
  });

  test('comes when the queue is short enough, for each that waits by its own measure', async () => {
    const room = new Room();
    const came: string[] = [];
    const waits = [room.of(3, 5).then(() => came.push('three')), room.of(0, 5).then(() => came.push('none'))];
    room.freed(4);
    await Promise.resolve();
    expect(came).toEqual([]);
    room.freed(3);
    await waits[0];
    expect(came).toEqual(['three']);
    room.freed(0);
    await waits[1];
    expect(came).toEqual(['three', 'none']);
  });
});
