import { mkdir, readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { replayFile } from '../../../src/lab/report/replay-file.js';
import { replayReportSchema } from '../../../src/lab/report/replay-report.js';
import { config, longRecording, recordingFolder, suiteDatabase } from '../../support/replays.js';
import { runCli } from '../../support/run-cli.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeEach(async () => {
  recordings = await recordingFolder();
});
afterEach(() => recordings.remove());

describe('palimpsest replay', () => {
  test('replays several recordings in parallel and writes their reports, despite an invalid one', async () => {
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
    const reports = printed
      .filter(({ report }) => report === 'replay')
      .map((report) => replayReportSchema.parse(report));
    expect(reports.map(({ recording }) => recording.name).sort()).toEqual(['one.jsonl', 'two.jsonl']);
    expect((await readdir(out)).length).toBe(4);
    for (const name of await readdir(out))
      expect([name, (await stat(join(out, name))).mode & 0o777]).toEqual([name, 0o600]);
    expect((await stat(out)).mode & 0o777).toBe(0o700);
    const own = await replayFile(two, suiteDatabase(), { config: config({ tokens: true }) });
    expect(reports.find(({ recording }) => recording.name === 'two.jsonl')).toEqual(JSON.parse(JSON.stringify(own)));
    const markdown = await readFile(
      join(out, (await readdir(out)).find((name) => name.startsWith('two') && name.endsWith('.md')) ?? ''),
      'utf8',
    );
    expect(markdown).toContain(own.digest);
  });

  test('only lists on request', async () => {
    const path = await recordings.write('one.jsonl', longRecording(2).text);
    const { code, stdout } = await runCli(['replay', path, '--dry-run']);
    expect([code, stdout]).toEqual([
      0,
      'one.jsonl: claude-code, 1 session, messages: 2 user, 6 assistant, 4 calls, 4 results\n',
    ]);
    await recordings.write('cut.jsonl', longRecording(2).text.slice(0, -40));
    const cut = await runCli(['replay', join(recordings.folder, 'cut.jsonl'), '--dry-run', '--json']);
    expect([cut.code, JSON.parse(cut.stdout)]).toMatchObject([
      1,
      { complete: false, losses: { by_reason: { 'truncated-file': 1 } } },
    ]);
    expect(cut.stderr).toMatch(/cut\.jsonl is truncated: its report lacks the rest/);
    const titles = await recordings.write('titles.jsonl', '{"type":"summary","summary":"a title","leafUuid":"u"}\n');
    expect(await runCli(['replay', titles, '--dry-run'])).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('titles.jsonl holds no session\n'),
    });
    const spoilt = await recordings.write(
      'spoilt.jsonl',
      '{"type":"summary","summary":"a title","leafUuid":"u"}\nnot json\n',
    );
    expect(await runCli(['replay', spoilt, '--dry-run'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('holds no readable session; its report states the reason'),
    });
  });

  test('takes a folder as every recording below it, and names other files', async () => {
    await mkdir(join(recordings.folder, 'below'));
    await recordings.write('below/one.jsonl', longRecording(2).text);
    await recordings.write('below/notes.txt', 'nothing of the kind');
    await recordings.write('two.jsonl', longRecording(3).text);
    const { code, stdout, stderr } = await runCli([
      'replay',
      recordings.folder,
      join(recordings.folder, 'two.jsonl'),
      '--dry-run',
    ]);
    expect([code, stdout.split('\n').map((line) => line.split(':')[0])]).toEqual([0, ['one.jsonl', 'two.jsonl', '']]);
    expect(stderr).toMatch(/: 1 file is not a recording: below\/notes\.txt\n$/);
  });

  test('replays files of equal bytes once as one session, with a report for each', async () => {
    const paths = await Promise.all(
      ['one.jsonl', 'two.jsonl', 'three.jsonl'].map((name) => recordings.write(name, longRecording(3).text)),
    );
    const { code, stdout } = await runCli(['replay', ...paths, '--jobs', '2', '--json']);
    const reports = stdout
      .trim()
      .split('\n')
      .map((line) => replayReportSchema.parse(JSON.parse(line)));
    expect([code, reports.map(({ recording }) => recording.name).sort()]).toEqual([
      0,
      ['one.jsonl', 'three.jsonl', 'two.jsonl'],
    ]);
    expect(new Set(reports.map(({ digest }) => digest)).size).toBe(1);
  });

  test('does not begin if it cannot replay or write', async () => {
    const one = await recordings.write('one.jsonl', longRecording(1).text);
    const two = await recordings.write('two.jsonl', longRecording(2).text);
    const none = await recordings.write('none.txt', 'nothing of the kind');
    for (const [args, message] of [
      [[none, '/nowhere/at-all'], /none\.txt is of no known format[\s\S]*at-all cannot be read \(ENOENT\)/],
      [[one, '--out', join(none, 'x')], /--out \S*none\.txt\/x cannot be written \(ENOTDIR\); name a folder/],
      [[one, '--into', '../x'], /"\.\.\/x" is not a session id/],
      [[one, two, '--into', 'x'], /--into x names one session for 2 recordings/],
    ] as const) {
      const { code, stdout, stderr } = await runCli(['replay', ...args]);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(message);
      expect(stderr).not.toMatch(/Starting XTDB/);
    }
  });

  test.each([
    [['--config', '/nowhere.json', 'a'], /--config \/nowhere\.json cannot be read \(ENOENT\)/],
    [['--jobs', '0', 'a'], /argument '0' is invalid.*whole number from 1/],
  ])('refuses %j by name', async (args, message) => {
    const { code, stderr } = await runCli(['replay', ...args]);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(message);
  });

  test('names an invalid value of a configuration', async () => {
    const bad = await recordings.write('bad.json', '{"window":{"perTurn":-1}}');
    expect((await runCli(['replay', 'x', '--config', bad])).stderr).toMatch(/bad\.json: window\.perTurn: .*>=0/);
    const worse = await recordings.write('worse.json', '{"windw":{}}');
    expect((await runCli(['replay', 'x', '--config', worse])).stderr).toMatch(/"windw"/);
  });
});
