import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { openRecording } from '../../../../src/lab/recordings/open-recording.js';

test('a pipe without a writer is refused at once, with the remedy', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'recording-'));
  try {
    execFileSync('mkfifo', [join(folder, 'pipe')]);
    await expect(openRecording(join(folder, 'pipe'))).rejects.toThrow(
      /\(ESPIPE\): .*save the output of the pipe to a file/,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
});
