import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { replayFile } from '../../../src/lab/report/replay-file.js';
import { openClient } from '../../support/context.js';
import { config, longRecording, recordingFolder } from '../../support/replays.js';
import { Road } from '../../support/road.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
let dataDir: string;
beforeEach(async () => {
  recordings = await recordingFolder();
  dataDir = join(recordings.folder, 'data');
  await mkdir(dataDir);
});
afterEach(async () => {
  await recordings.remove();
});

describe('a replay', () => {
  test('waits longer than an agent for a slow database', async () => {
    const recording = longRecording(3);
    const path = await recordings.write('slow.jsonl', recording.text);
    const into = `slow-${process.pid}-${Date.now()}`;
    const road = new Road(dataDir);
    const database = {
      address: { kind: 'unix', socketPath: road.socketPath },
      dataDir,
      close: async () => undefined,
    } as const;
    await road.open();
    const clock = () => Date.UTC(2026, 0, 5, 9);
    const before = await openClient(recordings.folder, { address: database.address, dataDir, clock, track: false });
    const session = await before.openSession({ id: into });
    await before.backpressure(0);
    await road.close();
    await session.reportMessage({ role: 'user', text: 'change number 0' });
    expect(await before.close()).toMatchObject({ unflushed: 1 });
    const replayed = replayFile(path, database, { config: config(), into });
    try {
      // An agent would have been refused by now.
      await Promise.race([replayed, delay(11_000)]);
      await road.open();
      expect((await replayed).sessions).toMatchObject([{ session: into, steps: 18 }]);
    } finally {
      await road.close();
    }
  });
});
