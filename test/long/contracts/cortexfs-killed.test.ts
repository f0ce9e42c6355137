import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from '@jest/globals';
import { runCli } from '../../support/run-cli.js';
import { type DirectoryFiles, FOREIGN, filesIn, writeFiles } from '../../support/session-directories.js';

const KILL_AT = join(import.meta.dirname, '..', '..', 'support', 'kill-at.mjs');

test('an import killed anywhere is finished by the next one, also with a grown directory, whole and once', async () => {
  const root = await mkdtemp(join(tmpdir(), 'palimpsest-killed-'));
  // Starts a separate node with a database on disk, because only then is there a journal.
  const data = ['--data', join(root, 'data')];
  const grown: DirectoryFiles = {
    ...FOREIGN,
    'messages.jsonl': [
      FOREIGN['messages.jsonl'],
      '{"role":"user","content":"More?"}\n',
      '{"role":"assistant","content":"No."}\n',
    ].join(''),
    'context/pinned/new.md': 'new\n',
  };
  const [small, large] = [join(root, 'small'), join(root, 'large')];
  await writeFiles(small, FOREIGN);
  await writeFiles(large, grown);
  // The first record is the session, the second its prompt. Then each step has one.
  for (const [place, next] of [
    ['record before 1', small],
    ['record after 1', small],
    ['record after 2', large],
    ['record before 6', small],
    ['record after 8', large],
    ['record after 13', large],
    ['record after 14', small],
  ] as const) {
    const session = `killed-${randomUUID()}`;
    const run = (folder: string, env = {}) =>
      runCli(['import', folder, '--session', session, '--root', root, '--json', ...data], env);
    const killed = await run(small, { NODE_OPTIONS: `--import ${KILL_AT}`, PALIMPSEST_KILL_AT: place });
    expect({ place, code: killed.code, stdout: killed.stdout }).toEqual({ place, code: null, stdout: '' });
    const done = await run(next);
    expect({ place, ...done }).toMatchObject({ place, code: 0, stderr: '' });
    expect(JSON.parse((await run(next)).stdout)).toMatchObject({ outcome: 'unchanged' });
    const out = join(root, session);
    expect(await runCli(['export', session, out, '--format', 'cortexfs', ...data])).toMatchObject({ code: 0 });
    expect(await filesIn(out)).toEqual(next === small ? FOREIGN : grown);
  }
  await runCli(['node', 'stop', ...data]);
  await rm(root, { recursive: true, force: true });
});
