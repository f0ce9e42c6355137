import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { RecordingError } from '../../../../src/lab/recordings/open-recording.js';
import { effort } from '../../../support/effort.js';
import { bytesSource, type Imported, importAll, recordingPath } from '../../../support/recordings.js';

const LINES = ['claude-code', 'codex', 'pi'].flatMap((format) =>
  readdirSync(recordingPath(format)).map((file) => `${format}/${file}`),
);

/** An entry without the additions of later records. */
const stub = (entry: Imported['entries'][number]): unknown =>
  entry.kind === 'session'
    ? [entry.kind, entry.native_id]
    : [entry.kind, entry.session, entry.place, 'call_id' in entry ? entry.call_id : ''];

async function cut(bytes: Buffer, at: number): Promise<Imported | RecordingError> {
  try {
    return await importAll(bytesSource(bytes.subarray(0, at)));
  } catch (error) {
    if (error instanceof RecordingError) return error;
    throw error;
  }
}

describe.each(LINES)('%s cut at any byte', (name) => {
  const bytes = readFileSync(recordingPath(name));

  test('is a reported prefix of the whole', async () => {
    const whole = (await importAll(bytesSource(bytes))).entries.map(stub);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: bytes.length - 1 }), async (at) => {
        const found = await cut(bytes, at);
        if (found instanceof RecordingError) {
          // Only if even the first record that reveals the format is missing.
          expect(['empty', 'unrecognised', 'binary']).toContain(found.code);
          expect(at).toBeLessThan(bytes.indexOf('\n') + 400);
          return;
        }
        const stubs = found.entries.map(stub);
        expect(stubs).toEqual(whole.slice(0, stubs.length));
        const tail = bytes
          .subarray(bytes.lastIndexOf('\n', at - 1) + 1, at)
          .toString()
          .trim();
        if (tail !== '' && !tail.endsWith('}'))
          expect(found.losses.map(({ reason }) => reason)).toContain('truncated-file');
        if (tail === '') expect(found.losses.map(({ reason }) => reason)).not.toContain('truncated-file');
      }),
      { numRuns: effort(25, 400) },
    );
  });
});
