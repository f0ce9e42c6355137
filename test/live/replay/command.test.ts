import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { replayFile } from '../../../src/replay/replay-file.js';
import { replayReportSchema } from '../../../src/replay/replay-report.js';
import { config, longRecording, recordingFolder, suiteDatabase } from '../../support/replays.js';
import { runCli } from '../../support/run-cli.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeEach(async () => {
  recordings = await recordingFolder();
});
afterEach(() => recordings.remove());

describe('palimpsest replay', () => {
  test('replays several recordings side by side and writes their reports; one that is none does not keep the others from it', async () => {
    const one = await recordings.write('one.jsonl', longRecording(4).text);
    const two = await recordings.write('two.jsonl', longRecording(6, 2).text);
    const none = await recordings.write('none.jsonl', 'nothing of the kind');
    const out = join(recordings.folder, 'out');
    const { code, stdout, stderr } = await runCli(['replay', one, none, two, '--jobs', '2', '--out', out, '--json']);
    expect(code).toBe(1);
    expect(stderr).toMatch(/Starting XTDB/);
    const printed = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(printed.find(({ error }) => error !== undefined)).toMatchObject({
      recording: { name: 'none.jsonl' },
      error: { code: 'unrecognised' },
    });
    const reports = printed.filter(({ report }) => report === 'replay').map((report) => replayReportSchema.parse(report));
    expect(reports.map(({ recording }) => recording.name).sort()).toEqual(['one.jsonl', 'two.jsonl']);
    expect((await readdir(out)).length).toBe(4);
    const own = await replayFile(two, suiteDatabase(), { config: config({ tokens: true }) });
    expect(reports.find(({ recording }) => recording.name === 'two.jsonl')).toEqual(JSON.parse(JSON.stringify(own)));
    const markdown = await readFile(
      join(out, (await readdir(out)).find((name) => name.startsWith('two') && name.endsWith('.md')) ?? ''),
      'utf8',
    );
    expect(markdown).toContain(own.digest);
  }, 120_000);

  test('only tells what is there when it is asked to', async () => {
    const path = await recordings.write('one.jsonl', longRecording(2).text);
    const { code, stdout } = await runCli(['replay', path, '--dry-run']);
    expect([code, stdout]).toEqual([0, 'one.jsonl: claude-code, 1 sessions, messages 2 user, 6 assistant, 4 calls, 4 results\n']);
  });

  test.each([
    [['--into', 'x', 'a', 'b'], /--into x names one session for 2 recordings/],
    [['--config', '/nowhere.json', 'a'], /--config \/nowhere\.json cannot be read \(ENOENT\)/],
    [['--jobs', '0', 'a'], /argument '0' is invalid.*whole number from 1/],
  ])('refuses %j by name', async (args, message) => {
    const { code, stderr } = await runCli(['replay', ...args]);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(message);
  });

  test('names the value of a configuration that is not valid', async () => {
    const bad = await recordings.write('bad.json', '{"window":{"perTurn":-1}}');
    expect((await runCli(['replay', 'x', '--config', bad])).stderr).toMatch(/bad\.json: window\.perTurn: .*>=0/);
    const worse = await recordings.write('worse.json', '{"windw":{}}');
    expect((await runCli(['replay', 'x', '--config', worse])).stderr).toMatch(/"windw"/);
  });
});
