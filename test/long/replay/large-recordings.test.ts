import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { effort } from '../../support/effort.js';
import { namesOfOneHash, nested } from '../../support/hostile-json.js';
import { RecordingLines, recordingFolder, replay } from '../../support/replays.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeEach(async () => {
  recordings = await recordingFolder();
});
afterEach(() => recordings.remove());

const run = async (text: string) => replay(await recordings.write('a.jsonl', text));

test('replays any number of calls in one turn', async () => {
  const count = effort(500, 10_000);
  const lines = new RecordingLines().user('go');
  for (let i = 0; i < count; i++) lines.calls(`c${i}`, 'TodoWrite', { n: i });
  for (let i = 0; i < count; i++) lines.answers(`c${i}`, `ok ${i}`);
  const report = await run(lines.says('done').text);
  expect(report).toMatchObject({
    turns: 1,
    steps: 2 * count + 2,
    recorded: { calls: count, results: count },
    contexts: { count: 2 },
  });
  expect(report.objects.toolcalls.created).toBe(count);
});

test('replays calls with hostile arguments without a loss', async () => {
  const collisions = Object.fromEntries(namesOfOneHash(effort(2_000, 32_768)).map((name) => [name, 1]));
  const lines = new RecordingLines()
    .user('go')
    .calls('many', 'TodoWrite', collisions)
    .answers('many', 'ok')
    .calls('deep', 'TodoWrite', { todos: nested(450) })
    .answers('deep', 'ok')
    .calls('large', 'TodoWrite', { text: 'x'.repeat(9 * 1_048_576) })
    .answers('large', 'ok')
    .calls('bottomless', 'TodoWrite', { todos: 'HERE' })
    .answers('bottomless', 'ok')
    .says('done');
  const report = await run(lines.text.replace('"HERE"', `${'['.repeat(100_000)}${']'.repeat(100_000)}`));
  expect(report.recorded.calls).toBe(3);
  expect(report.objects.toolcalls.created).toBe(3);
  expect(report.losses.each).toContainEqual(
    expect.objectContaining({ reason: 'malformed-record', detail: expect.stringContaining('nested over 512 deep') }),
  );
});
