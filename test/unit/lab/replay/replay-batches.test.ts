import { expect, test } from '@jest/globals';
import { replayInBatches } from '../../../../src/lab/report/replay-many.js';
import { config, longRecording, recordingFolder } from '../../../support/replays.js';

test('fills one database up to a size, then the next, and closes each after its batch', async () => {
  const recordings = await recordingFolder();
  const said: string[] = [];
  try {
    const text = longRecording(1).text;
    const paths = await Promise.all(
      ['a', 'b', 'c', 'd'].map((name) =>
        recordings.write(`${name}.jsonl`, name === 'd' ? text.repeat(4) : `${text}\n`.replace('number 0', name)),
      ),
    );
    const outcomes = await replayInBatches(
      paths.map((path) => ({ path, config: config() })),
      {
        jobs: 1,
        batchBytes: text.length * 2.5,
        open: async () => {
          said.push('open');
          // There is no database, so every replay fails and reports that in its place.
          return {
            address: async () => Promise.reject(new Error('no database')),
            dataDir: undefined,
            close: async () => void said.push('close'),
          };
        },
        onOutcome: ({ job }) => void said.push(job.path.slice(-7, -6)),
      },
    );
    expect(said).toEqual(['open', 'a', 'b', 'close', 'open', 'c', 'close', 'open', 'd', 'close']);
    expect(outcomes.map((outcome) => 'error' in outcome)).toEqual([true, true, true, true]);
  } finally {
    await recordings.remove();
  }
});

test('puts all recordings into one database without a bound', async () => {
  const recordings = await recordingFolder();
  const said: string[] = [];
  try {
    const paths = [
      await recordings.write('a.jsonl', longRecording(1).text),
      await recordings.write('b.jsonl', longRecording(1).text),
    ];
    const outcomes = await replayInBatches(
      paths.map((path) => ({ path, config: config() })),
      {
        jobs: 1,
        batchBytes: Number.POSITIVE_INFINITY,
        open: async () => {
          said.push('open');
          return {
            address: async () => Promise.reject(new Error('no database')),
            dataDir: undefined,
            close: async () => void said.push('close'),
          };
        },
      },
    );
    expect(said).toEqual(['open', 'close']);
    expect(outcomes).toHaveLength(2);
  } finally {
    await recordings.remove();
  }
});
