import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parseLabConfig } from '../../../../src/lab/laboratory/lab-config.js';
import { labHtml } from '../../../../src/lab/laboratory/lab-html.js';
import { labMarkdown } from '../../../../src/lab/laboratory/lab-markdown.js';
import { MEASURES } from '../../../../src/lab/laboratory/measures.js';
import { runLab } from '../../../../src/lab/laboratory/run-lab.js';
import { longRecording, recordingFolder } from '../../../support/replays.js';
import { noDatabase } from '../../../support/timelines.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeEach(async () => {
  recordings = await recordingFolder();
});
afterEach(() => recordings.remove());

const policies = [
  { policy: 'last-results', keep: 3 },
  { policy: 'truncate-oldest', over: 2_000, keep: 1_000 },
  { policy: 'clairvoyant' },
];
const config = parseLabConfig({ policies, least: 10 }, 'test');

describe('the laboratory', () => {
  test('reports the same in every run, for any names and any order of recordings', async () => {
    const [one, two] = [longRecording(12).text, longRecording(9, 3).text];
    const first = await runLab([await recordings.write('a.jsonl', one), await recordings.write('b.jsonl', two)], {
      config,
      open: noDatabase,
    });
    const again = await runLab([await recordings.write('x.jsonl', two), await recordings.write('y.jsonl', one)], {
      config,
      open: noDatabase,
    });
    expect(JSON.stringify(again.report)).toBe(JSON.stringify(first.report));
    expect(first.report.sessions).toHaveLength(2);
    expect(Object.values(first.times).map(({ calls }) => calls > 0)).toEqual([true, true, true, true, true]);
  });

  test('reports no text, path or name of a recording', async () => {
    const path = await recordings.write('secret-name.jsonl', longRecording(12).text);
    const { report } = await runLab([path], { config, open: noDatabase });
    for (const text of [JSON.stringify(report), labMarkdown(report), labHtml(report)]) {
      for (const said of ['secret-name', 'file-1', '/p/src', 'change number', 'a line of', 's-1', 'toolu'])
        expect(text).not.toContain(said);
    }
  });

  test('counts recordings of equal bytes once, skips short sessions, continues after unreadable files', async () => {
    const text = longRecording(12).text;
    const paths = [
      await recordings.write('a.jsonl', text),
      await recordings.write('copy.jsonl', text),
      await recordings.write('short.jsonl', longRecording(2).text),
      await recordings.write('none.jsonl', 'nothing of the kind'),
    ];
    const lines: string[] = [];
    const { report, failures } = await runLab(paths, {
      config,
      open: noDatabase,
      onProgress: (line) => lines.push(line),
    });
    expect([report.sessions.length, report.leftOut, report.recordings]).toEqual([1, 1, 2]);
    expect(failures.map(({ error }) => error.message)).toEqual([expect.stringMatching(/no known format/)]);
    expect(lines.some((line) => line.startsWith('1/4'))).toBe(true);
  });

  test('draws every session and every policy on one page that loads nothing', async () => {
    const { report } = await runLab([await recordings.write('a.jsonl', longRecording(12).text)], {
      config,
      open: noDatabase,
    });
    const page = labHtml(report);
    expect(page).not.toMatch(/<script|<link|<img|url\(|https?:/);
    // One plot over all sessions, three for the session. Each has a line for every policy.
    expect(page.match(/<svg /g)).toHaveLength(4);
    expect(page.match(/<path class="line"/g)).toHaveLength(3 * 5);
    expect(page).not.toMatch(/NaN|undefined|Infinity/);
  });

  test('says of every policy where it comes from, and how exact its figures are', async () => {
    const { report } = await runLab([await recordings.write('a.jsonl', longRecording(12).text)], {
      config,
      open: noDatabase,
    });
    const markdown = labMarkdown(report);
    expect(markdown).toMatch(/· exact \|/);
    expect(markdown).toContain('## What this does not show');
    expect(markdown).toMatch(/- \*\*last 3 results\*\* \(exact; SWE-agent/);
    for (const { name } of MEASURES) expect(markdown).toContain(`- **${name}**: `);
  });

  test('chooses settings on the named recordings and reports them on all others', async () => {
    const paths = [
      await recordings.write('a.jsonl', longRecording(12).text),
      await recordings.write('b.jsonl', longRecording(9, 3).text),
    ];
    const { report } = await runLab(paths, { config, open: noDatabase, train: new Set(paths.slice(0, 1)) });
    expect([report.split.by, report.split.train.length, report.split.test.length]).toEqual(['named', 1, 1]);
    expect(report.split.train).not.toEqual(report.split.test);
    expect(labMarkdown(report)).toMatch(/## Test[\s\S]*## Train/);
  });

  test('keeps the sessions that are complete when it is interrupted', async () => {
    const paths = [
      await recordings.write('a.jsonl', longRecording(12).text),
      await recordings.write('b.jsonl', longRecording(9, 3).text),
    ];
    const stop = new AbortController();
    const { report } = await runLab(paths, {
      config,
      open: noDatabase,
      signal: stop.signal,
      onProgress: (line) => (line.startsWith('1/2') ? stop.abort(new Error('enough')) : undefined),
    });
    expect([report.sessions.length, report.missing]).toEqual([1, 1]);
    expect(labMarkdown(report)).toContain('interrupted: 1 recordings are missing');
    const before = AbortSignal.abort(new Error('at once'));
    await expect(runLab(paths, { config, open: noDatabase, signal: before })).rejects.toThrow('at once');
  });
});

describe('its configuration', () => {
  test.each([
    [{ policies: [] }, /policies: /],
    [{ policies: [{ policy: 'last-results' }] }, /policies\.0\.keep/],
    [{ policies: [{ policy: 'forget-everything' }] }, /policies\.0\.policy/],
    [{ least: 0 }, /least/],
    [{ budget: 3 }, /configuration may hold policies, sweep, least, window/],
    [{ policies: [{ policy: 'clairvoyant' }, { policy: 'clairvoyant', where: 'at borders' }] }, /is listed twice/],
  ])('names its error: %j', (value, message) => {
    expect(() => parseLabConfig(value, 'lab.json')).toThrow(message);
  });
});
