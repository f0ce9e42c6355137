import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { recogniseRecording } from '../../../src/lab/recordings/import-recording.js';
import { RecordingError } from '../../../src/lab/recordings/open-recording.js';
import { bytesSource, type Imported, importAll, recordingPath } from '../../support/recordings.js';

const NEWLINE = 0x0a;
/** The small recordings of one file each, except for JSON lines, which other tests cover. */
const FILES = readdirSync(recordingPath(''), { recursive: true, encoding: 'utf8' })
  .filter(
    (name) =>
      statSync(recordingPath(name)).isFile() && !name.includes('/folder/') && !/^(?:claude-code|codex|pi)\//.test(name),
  )
  .sort();

/**
 * Returns the result of an import. Undefined if the recording is not recognised, which is reported
 * before the first entry.
 */
async function imported(content: Buffer): Promise<Imported | undefined> {
  try {
    return await importAll(bytesSource(content, 1009));
  } catch (error) {
    if (error instanceof RecordingError) return undefined;
    throw error;
  }
}

test('there is a small recording of each format', () => {
  expect(new Set(FILES.map((name) => name.split('/')[0])).size).toBe(8);
});

describe.each(FILES)('%s', (name) => {
  const bytes = readFileSync(join(recordingPath(''), name));

  test('is recognised as the format of its folder', () => {
    expect(recogniseRecording(bytesSource(bytes)).format).toBe(name.split('/')[0]);
  });

  test('never crashes cut at any byte, and reports every loss', async () => {
    const whole = (await imported(bytes))?.entries.length ?? 0;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: bytes.length - 1 }), async (cut) => {
        const run = await imported(bytes.subarray(0, cut));
        const betweenRecords = bytes[cut] === NEWLINE || bytes[cut - 1] === NEWLINE;
        if (run === undefined || run.entries.length >= whole || (betweenRecords && name.endsWith('.jsonl'))) return;
        expect(run.losses.map(({ reason }) => reason)).toContain('truncated-file');
      }),
      { numRuns: 100 },
    );
  });

  test('reports the loss when cut within its first lines', async () => {
    const whole = (await imported(bytes))?.entries.length ?? 0;
    for (let cut = 0; cut < Math.min(300, bytes.length); cut++) {
      const run = await imported(bytes.subarray(0, cut));
      const betweenRecords = bytes[cut] === NEWLINE || bytes[cut - 1] === NEWLINE;
      if (run === undefined || run.entries.length >= whole || (betweenRecords && name.endsWith('.jsonl'))) continue;
      expect([cut, run.losses.map(({ reason }) => reason)]).toEqual([cut, expect.arrayContaining(['truncated-file'])]);
    }
  });

  test('never crashes with any bytes changed', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        async (changes) => {
          const changed = Buffer.from(bytes);
          for (const [at, byte] of changes) changed[at] = byte;
          await imported(changed);
        },
      ),
      { numRuns: 100 },
    );
  });
});
