import { appendFile, cp, mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { basename, join, relative } from 'node:path';
import { expect, test } from '@jest/globals';
import { openRecording } from '../../../../src/lab/recordings/open-recording.js';
import { findRecordings } from '../../../../src/lab/replay/find-recordings.js';
import { recordingHash } from '../../../../src/lab/replay/replay-identity.js';
import { describeRecording, describeSource, recordingPath } from '../../../support/recordings.js';
import { withTemporaryFolder } from '../../../support/temporary-folder.js';

test('treats a folder of events as one recording and two such folders as two, and finds none twice', async () => {
  await withTemporaryFolder(async (folder) => {
    const conversation = recordingPath('openhands-sdk/folder');
    await cp(conversation, join(folder, 'one'), { recursive: true });
    await cp(join(conversation, 'events'), join(folder, 'two'), { recursive: true });
    await mkdir(join(folder, 'deep/er'), { recursive: true });
    await cp(recordingPath('pi/coding.jsonl'), join(folder, 'deep/er/a.jsonl'));
    await writeFile(join(folder, 'deep/notes.md'), 'no recording');
    const found = await findRecordings([
      join(folder, 'two'),
      folder,
      join(folder, 'deep/er/a.jsonl'),
      join(folder, 'none'),
    ]);
    expect(found.paths.map((path) => relative(folder, path))).toEqual(['two', 'deep/er/a.jsonl', 'one']);
    expect(found.others).toEqual([{ folder, names: ['deep/notes.md'] }]);
    expect(found.failures).toMatchObject([
      { path: join(folder, 'none'), error: { name: 'RecordingError', code: 'unreadable' } },
    ]);
  });
});

test('reads the session folders of agents as they are', async () => {
  await withTemporaryFolder(async (home) => {
    const put = async (from: string, ...to: readonly string[]): Promise<void> =>
      cp(recordingPath(from), join(home, ...to));
    const claude = ['.claude', 'projects', '-home-me-project'];
    await put('claude-code/coding.jsonl', ...claude, '5f0c0000-0000-4000-8000-000000000001.jsonl');
    await put(
      'claude-code/subagent.jsonl',
      ...claude,
      '5f0c0000-0000-4000-8000-000000000001',
      'subagents',
      'agent-a1.jsonl',
    );
    await writeFile(
      join(home, ...claude, '5f0c0000-0000-4000-8000-000000000001', 'subagents', 'agent-a1.meta.json'),
      '{"agentType":"x"}',
    );
    const codex = ['.codex', 'sessions', '2026', '01', '05'];
    await put('codex/coding.jsonl', ...codex, 'rollout-2026-01-05T09-00-00-019d0000-0000-7000-8000-000000000001.jsonl');
    const { paths, failures, others } = await findRecordings([
      join(home, '.claude', 'projects'),
      join(home, '.codex', 'sessions'),
    ]);
    expect(failures).toEqual([]);
    expect(others.map(({ names }) => names.map((name) => basename(name)))).toEqual([['agent-a1.meta.json']]);
    const about = await Promise.all(paths.map((path) => describeRecording(path)));
    expect(about.map(({ format, counts }) => [format, counts.calls > 0])).toEqual([
      ['claude-code', true],
      ['claude-code', true],
      ['codex', true],
    ]);
  });
});

test('finds as many recordings as files in a folder whose first file is one JSON document', async () => {
  for (const document of ['mini-swe-agent/text-blocks.traj.json', 'swe-agent/calls.traj']) {
    await withTemporaryFolder(async (folder) => {
      for (const name of ['inst-1', 'inst-2'])
        await cp(recordingPath(document), join(folder, name, `${name}.traj.json`));
      await cp(recordingPath('claude-code/coding.jsonl'), join(folder, 'zz.jsonl'));
      const { paths, failures, others } = await findRecordings([folder]);
      expect(paths.map((path) => relative(folder, path))).toEqual([
        'inst-1/inst-1.traj.json',
        'inst-2/inst-2.traj.json',
        'zz.jsonl',
      ]);
      expect([failures, others]).toEqual([[], []]);
    });
  }
});

test('follows links to recordings, counts each file once, and names a dangling link', async () => {
  await withTemporaryFolder(async (root) => {
    const [folder, away] = [join(root, 'named'), join(root, 'away')];
    await mkdir(folder);
    await cp(recordingPath('pi/coding.jsonl'), join(away, 'a.jsonl'));
    await cp(recordingPath('openhands-sdk/folder'), join(away, 'conversation'), { recursive: true });
    await cp(recordingPath('claude-code/coding.jsonl'), join(folder, 'own.jsonl'));
    await symlink(join(away, 'a.jsonl'), join(folder, 'file'));
    await symlink(away, join(folder, 'folder'));
    await symlink(folder, join(folder, 'loop'));
    await symlink(join(root, 'none'), join(folder, 'broken.jsonl'));
    const { paths, failures, others } = await findRecordings([folder, join(away, 'a.jsonl')]);
    expect(paths.map((path) => relative(folder, path))).toEqual(['file', 'folder/conversation', 'own.jsonl']);
    expect(failures).toEqual([]);
    expect(others).toEqual([{ folder, names: ['broken.jsonl (unreadable (ENOENT))'] }]);
  });
});

test('reads a conversation of linked event files whole', async () => {
  await withTemporaryFolder(async (folder) => {
    const conversation = recordingPath('openhands-sdk/folder');
    await mkdir(join(folder, 'events'));
    for (const name of await readdir(join(conversation, 'events')))
      await symlink(join(conversation, 'events', name), join(folder, 'events', name));
    expect((await findRecordings([folder])).paths).toEqual([folder]);
    expect((await describeRecording(folder)).counts.calls).toBe((await describeRecording(conversation)).counts.calls);
  });
});

test('reads a growing session up to its size when it was opened', async () => {
  await withTemporaryFolder(async (folder) => {
    const path = join(folder, 'live.jsonl');
    await cp(recordingPath('claude-code/coding.jsonl'), path);
    const source = await openRecording(path);
    const before = await describeSource(source);
    const hash = await recordingHash(source);
    await appendFile(
      path,
      '{"type":"user","uuid":"later","sessionId":"s","message":{"role":"user","content":"more"}}\n{"type":"us',
    );
    expect(await describeSource(source)).toEqual(before);
    expect(await recordingHash(source)).toBe(hash);
    expect((await describeRecording(path)).counts.losses['truncated-file']).toBe(1);
  });
});

test('refuses a folder without a recording, with the number of examined files', async () => {
  await withTemporaryFolder(async (folder) => {
    expect((await findRecordings([folder])).failures).toMatchObject([{ error: { code: 'empty' } }]);
    await writeFile(join(folder, 'a.txt'), 'no recording');
    const [failure] = (await findRecordings([folder])).failures;
    expect(failure?.error).toMatchObject({
      code: 'unrecognised',
      message: expect.stringContaining(`below the folder ${folder} (1 files`),
    });
  });
});
