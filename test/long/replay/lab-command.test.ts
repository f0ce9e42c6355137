import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { longRecording, recordingFolder } from '../../support/replays.js';
import { runCli, startCli } from '../../support/run-cli.js';
import { until } from '../../support/until.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeEach(async () => {
  recordings = await recordingFolder();
});
afterEach(() => recordings.remove());

describe('palimpsest lab', () => {
  test('writes the same report in every run, and names unreadable input', async () => {
    await recordings.write('one.jsonl', longRecording(12).text);
    await recordings.write('none.jsonl', 'nothing of the kind');
    const config = await recordings.write(
      'lab.json',
      '{"policies": [{"policy": "last-results", "keep": 3}], "least": 20}',
    );
    const out = join(recordings.folder, 'out');
    const args = ['lab', join(recordings.folder, 'one.jsonl'), '--config', config, '--out'];
    const runs = await Promise.all(['a', 'b'].map((name) => runCli([...args, join(out, name)])));
    expect(runs.map(({ code, stderr }) => [code, stderr.includes('1/1 ')])).toEqual([
      [0, true],
      [0, true],
    ]);
    expect((await readdir(join(out, 'a'))).sort()).toEqual([
      'laboratory.html',
      'laboratory.json',
      'laboratory.md',
      'times.json',
    ]);
    for (const name of ['laboratory.html', 'laboratory.json', 'laboratory.md']) {
      expect(await readFile(join(out, 'a', name), 'utf8')).toBe(await readFile(join(out, 'b', name), 'utf8'));
    }
    const folder = await runCli([
      'lab',
      recordings.folder,
      join(recordings.folder, 'gone.jsonl'),
      '--least',
      '20',
      '--json',
    ]);
    expect(folder.code).toBe(1);
    expect(folder.stderr).toMatch(/files are not recordings/);
    expect(folder.stderr).toMatch(/gone\.jsonl: .*cannot be read/);
    expect(JSON.parse(folder.stdout)).toMatchObject({ report: 'laboratory', config: { least: 20 } });
  });

  test('names the fault of its input', async () => {
    const one = await recordings.write('one.jsonl', longRecording(2).text);
    const bad = await recordings.write('bad.json', '{"policies": [{"policy": "last-results", "keep": 0}]}');
    const [short, wrong, none] = await Promise.all([
      runCli(['lab', one]),
      runCli(['lab', one, '--config', bad]),
      runCli(['lab', join(recordings.folder, 'gone.jsonl')]),
    ]);
    expect([short?.code, short?.stderr]).toEqual([
      1,
      expect.stringMatching(/no session of these recordings has at least 30 model calls \(1 have fewer\).*--least/),
    ]);
    expect([wrong?.code, wrong?.stderr]).toEqual([64, expect.stringMatching(/bad\.json: policies\.0\.keep/)]);
    expect([none?.code, none?.stderr]).toEqual([1, expect.stringMatching(/gone\.jsonl.*cannot be read/)]);
  });

  test('leaves no node and no folder behind after SIGTERM', async () => {
    // A rewind needs a database.
    const lines = longRecording(60);
    const { place } = lines;
    const path = await recordings.write(
      'one.jsonl',
      lines.user('no').says('no').back(place).user('so').says('so').text,
    );
    const temporary = join(recordings.folder, 'temporary');
    await mkdir(temporary);
    const run = startCli(['lab', path, '--json'], { TMPDIR: temporary });
    await until(
      () => readdir(temporary),
      (names) => names.length > 0,
    );
    run.child.kill('SIGTERM');
    const { code, stdout } = await run.result;
    expect([code, JSON.parse(stdout)]).toMatchObject([1, { error: { code: 'interrupted' } }]);
    expect(await readdir(temporary)).toEqual([]);
  });
});
