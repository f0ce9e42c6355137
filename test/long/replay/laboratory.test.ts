import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { longRecording, recordingFolder } from '../../support/replays.js';
import { runCli } from '../../support/run-cli.js';

test('the laboratory gives the same bytes for all policies in every run, each with its own databases', async () => {
  const recordings = await recordingFolder();
  try {
    const paths = [
      await recordings.write('one.jsonl', longRecording(25).text),
      await recordings.write('two.jsonl', longRecording(14, 3).text),
    ];
    const outs = ['a', 'b'].map((name) => join(recordings.folder, name));
    const [first, second] = [
      await runCli(['lab', ...paths, '--out', outs[0] ?? '']),
      await runCli(['lab', ...[...paths].reverse(), '--out', outs[1] ?? '']),
    ];
    expect([first.code, second.code]).toEqual([0, 0]);
    for (const name of ['laboratory.md', 'laboratory.json', 'laboratory.html']) {
      const [a, b] = await Promise.all(outs.map((out) => readFile(join(out, name), 'utf8')));
      expect(b).toBe(a);
    }
  } finally {
    await recordings.remove();
  }
});
