import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { parseExperiment } from '../../../src/lab/experiments/experiment.js';
import { runExperiment } from '../../../src/lab/experiments/run-experiment.js';
import { longRecording, recordingFolder, suiteDatabase } from '../../support/replays.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
beforeEach(async () => {
  recordings = await recordingFolder();
});
afterEach(() => recordings.remove());

test('replays every recording in every way and leaves one dated folder without a path of the machine', async () => {
  const corpus = join(recordings.folder, 'corpus');
  await mkdir(corpus);
  await recordings.write('corpus/one.jsonl', longRecording(6).text);
  await recordings.write('corpus/two.jsonl', longRecording(4, 2).text);
  const out = join(recordings.folder, 'out');
  const experiment = parseExperiment(
    {
      name: 'narrow',
      question: 'Does a narrow window save anything?',
      sessions: ['one', 'two.jsonl'],
      parameters: [
        { name: 'wide', config: { tokens: false } },
        { name: 'narrow', config: { tokens: false, window: { perTurn: 1, turns: 1 } } },
      ],
    },
    'test',
  );
  const run = {
    experiment,
    corpus,
    out,
    open: async () => suiteDatabase(),
    jobs: 2,
    reports: false,
    command: 'the command',
    commit: 'the commit',
    date: '2026-01-02',
  };
  const { folder, failed } = await runExperiment(run);
  expect([folder, failed]).toEqual([join(out, '2026-01-02-narrow'), 0]);
  const kept = await readFile(join(folder, 'experiment.json'), 'utf8');
  const { results, command, commit } = JSON.parse(kept) as {
    results: { parameters: string; bytes: { sum: number } }[];
    command: string;
    commit: string;
  };
  expect([command, commit]).toEqual(['the command', 'the commit']);
  expect(results.map(({ parameters }) => parameters)).toEqual(['wide', 'narrow', 'wide', 'narrow']);
  expect(results[1]?.bytes.sum).toBeLessThan(results[0]?.bytes.sum ?? 0);
  const markdown = await readFile(join(folder, 'figures.md'), 'utf8');
  // No content of the recordings either: no file names, no words.
  for (const text of [kept, markdown])
    expect(text).not.toMatch(new RegExp(`${recordings.folder}|/p/|file-\\d|change number`));
  expect((await readdir(folder)).sort()).toEqual(['experiment.json', 'figures.md']);
  expect(markdown).toMatch(/\| narrow \| \d+ \| [\d ]+ \| -\d+\.\d % \|/);
  const whole = {
    ...experiment,
    name: 'whole',
    parameters: experiment.parameters.map((one) => ({ ...one, name: `${one.name}-2` })),
  };
  const reported = await runExperiment({ ...run, experiment: whole, reports: true });
  expect((await readdir(join(reported.folder, 'replays'))).length).toBe(8);
  const missing = { ...experiment, sessions: ['three'] };
  await expect(runExperiment({ ...run, experiment: missing })).rejects.toMatchObject({
    code: 'bad-config',
    message: expect.stringContaining('three'),
  });
});
