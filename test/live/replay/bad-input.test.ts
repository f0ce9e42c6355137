import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { longRecording, RecordingLines, recordingFolder, replay } from '../../support/replays.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeEach(async () => {
  recordings = await recordingFolder();
});
afterEach(() => recordings.remove());

const run = async (text: string | Buffer, name = 'a.jsonl') => replay(await recordings.write(name, text));

describe('an invalid recording is refused by name before anything is written', () => {
  test.each([
    ['an empty file', '', 'empty'],
    ['white space', ' \n\n', 'empty'],
    ['a binary', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 3, 0xff, 0xfe]), 'binary'],
    ['prose', 'Once upon a time.\n', 'unrecognised'],
  ])('if it is %s', async (_what, content, code) => {
    await expect(run(content)).rejects.toMatchObject({
      name: 'RecordingError',
      code,
      message: expect.stringContaining('a.jsonl'),
    });
  });

  test('a missing file', async () => {
    await expect(replay('/nowhere/at-all.jsonl')).rejects.toMatchObject({ code: 'unreadable' });
  });
});

describe('faults of a recording are reported', () => {
  test('a truncated one is replayed as far as possible', async () => {
    const { text } = longRecording(3);
    const report = await run(text.slice(0, -120));
    expect(report.complete).toBe(false);
    expect(report.losses.by_reason['truncated-file']).toBe(1);
    expect(report.steps).toBeGreaterThan(5);
  });

  test('lines of another format are lost one by one', async () => {
    const lines = longRecording(2).lines;
    const foreign =
      '{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{"type":"message","role":"user","content":[]}}';
    const report = await run([...lines.slice(0, 4), foreign, 'not json at all', ...lines.slice(4), ''].join('\n'));
    expect(report.recorded.calls).toBe(4);
    expect(report.losses.total).toBeGreaterThanOrEqual(2);
    expect(report.losses.each.map(({ place }) => place)).toEqual(expect.arrayContaining(['line 5', 'line 6']));
  });

  test('a repeated call id is a new call', async () => {
    const lines = new RecordingLines().user('go').reads('same', '/p/a.ts', 'x\n').reads('same', '/p/b.ts', 'y\n');
    const report = await run(lines.text);
    expect(report.objects.toolcalls.created).toBe(2);
    expect(report.losses.by_reason['duplicate-id']).toBe(1);
  });

  test('a clock that runs backwards is held', async () => {
    const lines = new RecordingLines()
      .user('one')
      .says('two')
      .user('three', Date.UTC(2020, 0, 1))
      .says('four', Date.UTC(1969, 0, 1))
      .user('five');
    const report = await run(lines.text);
    expect(report.clock).toEqual({ backwards: 1, impossible: 1, missing: 0 });
    expect(report.steps).toBe(5);
  });

  test('a clock ahead of this machine is not trusted', async () => {
    const lines = new RecordingLines()
      .user('one')
      .says('two', Date.UTC(2150, 0, 1))
      .user('three');
    const report = await run(lines.text);
    expect(report.clock.impossible).toBe(1);
    expect(report.turns).toBe(2);
  });
});
