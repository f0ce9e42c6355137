import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { RECORDING_FORMATS } from '../../../src/lab/recordings/neutral-session.js';
import { findCorpus } from '../../../src/lab/replay/find-recordings.js';
import { openReplayDatabase, type ReplayDatabase } from '../../../src/lab/replay/replay-database.js';
import { replayFile } from '../../../src/lab/report/replay-file.js';
import { replayReportSchema } from '../../../src/lab/report/replay-report.js';
import { config, fixtures, recordingFolder, suiteDatabase } from '../../support/replays.js';

const all = await fixtures();
const exchanged = await recordingFolder();
/** Recordings in the formats that only export other agents' sessions. */
const written: Readonly<Record<string, string>> = {
  atif: await exchanged.write(
    'run.json',
    JSON.stringify({
      schema_version: 'ATIF-v1.7',
      session_id: 'run-8',
      agent: { name: 'weaver', version: '3', model_name: 'loom-1' },
      steps: [
        { step_id: 1, source: 'user', message: 'Mend the hem', timestamp: '2026-02-03T10:00:00Z' },
        {
          step_id: 2,
          source: 'agent',
          message: 'Looking.',
          timestamp: '2026-02-03T10:00:05Z',
          tool_calls: [{ tool_call_id: 'k1', function_name: 'look', arguments: { path: 'hem.txt' } }],
          observation: { results: [{ source_call_id: 'k1', content: 'torn at the left' }] },
        },
        { step_id: 3, source: 'agent', message: 'Mended.', timestamp: '2026-02-03T10:00:09Z' },
      ],
    }),
  ),
  dataclaw: await exchanged.write(
    'export.jsonl',
    `${JSON.stringify({
      session_id: 'export-1',
      project: 'loom',
      model: 'loom-1',
      start_time: '2026-02-03T10:00:00Z',
      messages: [
        { role: 'user', content: 'Mend it' },
        {
          role: 'assistant',
          content: 'Looking.',
          tool_uses: [{ tool: 'Bash', input: { command: 'spin' }, output: { text: 'no thread' }, status: 'error' }],
        },
        { role: 'assistant', content: 'There is no thread.' },
      ],
    })}\n`,
  ),
};
const first = async (format: string) =>
  written[format] ?? (await findCorpus(dirname(all.get(format)?.[0] ?? ''))).files[0]?.path ?? '';
const cases = await Promise.all(RECORDING_FORMATS.map(async (format) => [format, await first(format)] as const));

let other: ReplayDatabase;
beforeAll(async () => {
  other = await openReplayDatabase(undefined);
});
afterAll(async () => {
  await other.close();
  await exchanged.remove();
});

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
