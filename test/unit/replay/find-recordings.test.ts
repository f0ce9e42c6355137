import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { expect, test } from '@jest/globals';
import { findRecordings } from '../../../src/replay/find-recordings.js';
import { recordingPath } from '../../support/recordings.js';
import { withTemporaryFolder } from '../../support/temporary-folder.js';

test('a folder of events is one recording, two of them below one folder are two, and nothing is found twice', async () => {
  await withTemporaryFolder(async (folder) => {
    const conversation = recordingPath('openhands-sdk/folder');
    await cp(conversation, join(folder, 'one'), { recursive: true });
    await cp(join(conversation, 'events'), join(folder, 'two'), { recursive: true });
    await mkdir(join(folder, 'deep/er'), { recursive: true });
    await cp(recordingPath('pi/coding.jsonl'), join(folder, 'deep/er/a.jsonl'));
    await writeFile(join(folder, 'deep/notes.md'), 'no recording');
    const found = await findRecordings([join(folder, 'two'), folder, join(folder, 'deep/er/a.jsonl'), join(folder, 'none')]);
    expect(found.paths.map((path) => relative(folder, path))).toEqual(['two', 'deep/er/a.jsonl', 'one']);
    expect(found.others).toEqual([{ folder, names: ['deep/notes.md'] }]);
    expect(found.failures).toMatchObject([{ path: join(folder, 'none'), error: { name: 'RecordingError', code: 'unreadable' } }]);
  });
});

test('a folder without a recording is refused with how much was looked at', async () => {
  await withTemporaryFolder(async (folder) => {
    expect((await findRecordings([folder])).failures).toMatchObject([{ error: { code: 'empty' } }]);
    await writeFile(join(folder, 'a.txt'), 'no recording');
    const [failure] = (await findRecordings([folder])).failures;
    expect(failure?.error).toMatchObject({ code: 'unrecognised', message: expect.stringContaining(`below the folder ${folder} (1 files`) });
  });
});
