import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { longRecording, recordingFolder } from '../../support/replays.js';
import { runCli } from '../../support/run-cli.js';

test('the laboratory gives the same bytes in one thread and in two, each run with its own databases', async () => {
  const recordings = await recordingFolder();
  try {
    const rewound = longRecording(20, 2);
    const { place } = rewound;
    const paths = [
      await recordings.write('one.jsonl', longRecording(25).text),
      await recordings.write('two.jsonl', longRecording(14, 3).text),
      await recordings.write('copy.jsonl', longRecording(25).text),
      // A rewind needs a database, which the threads share.
      await recordings.write('rewind.jsonl', rewound.user('no').says('no').back(place).user('so').says('so').text),
    ];
    const outs = ['a', 'b'].map((name) => join(recordings.folder, name));
    const [first, second] = [
      await runCli(['lab', ...paths, '--jobs', '1', '--out', outs[0] ?? '']),
      await runCli(['lab', ...[...paths].reverse(), '--jobs', '2', '--out', outs[1] ?? '']),
    ];
    expect([first.code, second.code]).toEqual([0, 0]);
    const report = JSON.parse(await readFile(join(outs[1] ?? '', 'laboratory.json'), 'utf8'));
    expect([report.recordings, report.sessions.length]).toEqual([3, 3]);
    for (const name of ['laboratory.md', 'laboratory.json', 'laboratory.html']) {
      const [a, b] = await Promise.all(outs.map((out) => readFile(join(out, name), 'utf8')));
      expect(b).toBe(a);
    }
  } finally {
    await recordings.remove();
  }
});
