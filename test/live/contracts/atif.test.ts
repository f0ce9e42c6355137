import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { exportTrajectory } from '../../../src/contracts/atif/export-trajectory.js';
import { NOTHING_HIDDEN } from '../../../src/history/rebuild/hidden-texts.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { importRecording } from '../../../src/lab/recordings/import-recording.js';
import { type ObjectId, sessionId } from '../../../src/objects/ids.js';
import { bytesSource } from '../../support/recordings.js';
import { replay, reviewedRecordings } from '../../support/replays.js';

const trajectory = JSON.stringify({
  schema_version: 'ATIF-v1.7',
  session_id: 'hem',
  agent: { name: 'weaver', version: '3', model_name: 'loom-1' },
  steps: [
    { step_id: 1, source: 'user', message: 'Mend the hem', timestamp: '2026-02-03T10:00:00.000Z' },
    {
      step_id: 2,
      source: 'agent',
      message: 'Looking.',
      timestamp: '2026-02-03T10:00:01.000Z',
      tool_calls: [
        { tool_call_id: 'k1', function_name: 'look', arguments: { at: 'hem', deep: [1, { no: null }] } },
        { tool_call_id: 'k2', function_name: 'spin', arguments: {} },
      ],
      observation: {
        results: [
          { source_call_id: 'k1', content: 'torn at the left\n' },
          { source_call_id: 'k2', content: 'no thread', extra: { is_error: true } },
        ],
      },
      metrics: { prompt_tokens: 90, completion_tokens: 8, cached_tokens: 40 },
    },
    { step_id: 3, source: 'agent', message: 'It is torn.', timestamp: '2026-02-03T10:00:02.000Z' },
    { step_id: 4, source: 'user', message: 'Then mend it', timestamp: '2026-02-03T10:01:00.000Z' },
    { step_id: 5, source: 'agent', message: 'Mended.', timestamp: '2026-02-03T10:01:01.000Z' },
  ],
});

interface Told {
  readonly at: number;
  readonly entry: object;
}

/** Returns the entries of a recording without ids and places, each with its time. */
async function entriesIn(text: string): Promise<readonly Told[]> {
  const entries: Told[] = [];
  const onLoss = (loss: object): never => {
    throw new Error(JSON.stringify(loss));
  };
  for await (const one of importRecording(bytesSource(Buffer.from(text)), { onLoss })) {
    if (one.kind === 'session') continue;
    const { place: _place, session: _session, native_id: _id, at = 0, ...entry } = one;
    entries.push({ at, entry: JSON.parse(JSON.stringify(entry)) });
  }
  return entries;
}

let reviewed: Awaited<ReturnType<typeof reviewedRecordings>>;
beforeAll(async () => {
  reviewed = await reviewedRecordings();
});
afterAll(() => reviewed.close());

/** Replays a recording and returns its session as a trajectory. */
async function thereAndBack(name: string, text: string, hidden = NOTHING_HIDDEN): Promise<string> {
  const { recordings, reviewer } = reviewed;
  const { sessions } = await replay(await recordings.write(`${name}.json`, text));
  const session = sessionId(sessions[0]?.session ?? '');
  const file = join(recordings.folder, `${name}-out.json`);
  const target = {
    timeline: await Timeline.open(await reviewer.delivered()),
    session,
    when: {},
    folder: file,
    flags: {},
    home: pathToFileURL(`${process.cwd()}/`),
    hiddenTexts: async () => hidden,
    applyRules: [],
  };
  const written = await exportTrajectory(target as never);
  expect(written.json).toMatchObject({ format: 'atif', steps: 5, file });
  await expect(exportTrajectory(target as never)).rejects.toThrow(/is not overwritten: name another file/);
  return readFile(file, 'utf8');
}

test('a trajectory that is imported, exported and imported again has the same entries', async () => {
  const once = await thereAndBack('once', trajectory);
  const [made, given] = [await entriesIn(once), await entriesIn(trajectory)];
  expect(made.map(({ entry }) => entry)).toEqual(given.map(({ entry }) => entry));
  // The database gives steps of the same time slightly different times.
  for (const [i, { at }] of given.entries()) expect(Math.abs((made[i]?.at ?? 0) - at)).toBeLessThanOrEqual(5);
  expect(JSON.parse(once)).toMatchObject({
    schema_version: 'ATIF-v1.7',
    agent: { name: 'palimpsest', version: expect.any(String) },
    final_metrics: { total_prompt_tokens: 90, total_completion_tokens: 8, total_cached_tokens: 40, total_steps: 5 },
  });
  const twice = await thereAndBack('twice', once);
  expect((await entriesIn(twice)).map(({ entry }) => entry)).toEqual(given.map(({ entry }) => entry));
});

test('an exported trajectory has nothing that redaction rules hide', async () => {
  const hidden = { ...NOTHING_HIDDEN, inForce: 2, texts: ['torn at the left'], objects: new Set<ObjectId>() };
  const text = await thereAndBack('hidden', trajectory, hidden);
  expect(text).not.toContain('torn at the left');
  expect(text).toContain('[redacted]');
});
