import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RECORDING_FORMATS } from '../../../src/lab/recordings/neutral-session.js';
import { findCorpus } from '../../../src/lab/replay/find-recordings.js';
import { openReplayDatabase, type ReplayDatabase } from '../../../src/lab/replay/replay-database.js';
import { replayFile } from '../../../src/lab/report/replay-file.js';
import { replayReportSchema } from '../../../src/lab/report/replay-report.js';
import { config, fixtures, suiteDatabase } from '../../support/replays.js';

const all = await fixtures();
const first = async (format: string) => (await findCorpus(dirname(all.get(format)?.[0] ?? ''))).files[0]?.path ?? '';
const cases = await Promise.all(RECORDING_FORMATS.map(async (format) => [format, await first(format)] as const));

let other: ReplayDatabase;
beforeAll(async () => {
  other = await openReplayDatabase(undefined);
});
afterAll(() => other.close());

describe('a recording of each format', () => {
  test.each(cases)('of %s is the same in two databases, to the last hash', async (format, path) => {
    const variant = `formats-${process.pid}-${Date.now()}`;
    const one = await replayFile(path, suiteDatabase(), { config: config(), variant });
    const two = await replayFile(path, other, { config: config(), variant });
    expect(two).toEqual(one);
    expect(one.digest).toMatch(/^[0-9a-f]{64}$/);
    expect(one.recording.formats).toEqual([format]);
    expect(one.steps).toBeGreaterThan(0);
    expect(one.contexts.count).toBeGreaterThan(0);
    expect(replayReportSchema.parse(JSON.parse(JSON.stringify(one)))).toEqual(one);
  });
});

describe('the digest', () => {
  test('differs with other parameters', async () => {
    const path = await first('claude-code');
    const variant = `digest-${process.pid}-${Date.now()}`;
    const one = await replayFile(path, suiteDatabase(), { config: config(), variant });
    const two = await replayFile(path, other, { config: config({ strict: true }), variant });
    expect(two.digest).not.toBe(one.digest);
    expect(two.sessions.map(({ session }) => session)).toEqual(one.sessions.map(({ session }) => session));
  });
});
