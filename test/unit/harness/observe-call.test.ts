import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { FileAccess } from '../../../src/client/file-access.js';
import type { CallItem } from '../../../src/harness/history-item.js';
import { type ObservationContext, observeCall, patchPaths } from '../../../src/harness/observe-call.js';
import { filesystemId } from '../../../src/objects/ids.js';

const TEXT = 'one\ntwo\nthree\n';
const NUMBERED = "Here's the result of running `cat -n` on a.ts:\n     1\tone\n     2\ttwo\n     3\tthree\n";
let root: string;
let files: FileAccess;

beforeAll(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-observe-')));
  await writeFile(join(root, 'a.ts'), TEXT);
  await writeFile(join(root, 'b.ts'), 'b');
  await mkdir(join(root, 'src', 'lib'), { recursive: true });
  for (const path of ['src/a.ts', 'src/lib/c.ts', 'src/my file.ts']) await writeFile(join(root, path), path);
  files = await FileAccess.open({ roots: [root], cwd: root, filesystemId: filesystemId('here') });
});

afterAll(() => rm(root, { recursive: true, force: true }));

/** Returns the effects of a call on the files of the folder, by name. */
async function observed(
  call: Pick<CallItem, 'tool' | 'args'> & Partial<CallItem>,
  context: Partial<ObservationContext> = {},
) {
  const whole: CallItem = { kind: 'call', content: '', status: 'ok', files: [], ...call };
  const { readings, mentions } = await observeCall(whole, {
    files,
    mineShell: false,
    strict: false,
    now: 1,
    ...context,
  });
  const nameOf = (path: string): string => path.slice(root.length + 1);
  return {
    read: readings.map(({ source, activate }) => [nameOf(source.path), activate ? 'active' : 'indexed']),
    named: mentions.map(({ source }) => nameOf(source.path)),
  };
}

const read = (how: 'active' | 'indexed') => ({ read: [['a.ts', how]], named: [] });
const named = (...names: string[]) => ({ read: [], named: names });
const NOTHING = named();

describe('effects of a reported call on files, by the form of its tool', () => {
  test.each<[string, CallItem['args'], string, Awaited<ReturnType<typeof observed>>]>([
    ['read_file', { path: 'a.ts' }, TEXT, read('active')],
    ['view', { file_name: 'a.ts', offset: 2 }, 'two\n', read('indexed')],
    ['open', { path: 'a.ts', line_number: 1 }, TEXT, read('active')],
    ['read_files', { files: [{ path: 'a.ts' }] }, TEXT, read('active')],
    ['goto', { line_number: 3 }, 'three', NOTHING],
    ['view_image', { path: 'a.ts' }, '[image]', read('indexed')],
    ['file_editor', { command: 'view', path: 'a.ts' }, NUMBERED, read('active')],
    ['file_editor', { command: 'view', path: 'a.ts', view_range: [1, 2] }, '     1\tone\n     2\ttwo', read('indexed')],
    ['file_editor', { command: 'str_replace', path: 'a.ts', old_str: 'x', new_str: 'one' }, 'edited', read('indexed')],
    ['str_replace_editor', { command: 'view', path: 'a.ts' }, NUMBERED, read('active')],
    ['editor', { path: 'a.ts', new_text: TEXT }, 'done', read('indexed')],
    ['undo_edit', { path: 'a.ts' }, 'done', read('indexed')],
    ['NotebookEdit', { notebook_path: 'a.ts' }, 'done', read('indexed')],
    ['write_file', { path: 'a.ts', content: TEXT }, 'done', read('indexed')],
    [
      'apply_patch',
      { input: '*** Begin Patch\n*** Update File: a.ts\n@@\n-x\n+one\n*** End Patch' },
      'done',
      read('indexed'),
    ],
    ['list_directory', { path: '.' }, 'a.ts\nb.ts\nc.ts', named('a.ts', 'b.ts')],
    ['find_file', { file_name: 'a.ts', dir: '.' }, 'a.ts', named('a.ts')],
    ['search_dir', { search_term: 'o', dir: '.' }, 'a.ts:1:one', named('a.ts')],
    ['search_file', { search_term: 'o', file: 'a.ts' }, 'Line 1:one', named('a.ts')],
    ['directory_tree', { path: '.' }, '├── a.ts\n└── b.ts', named('a.ts', 'b.ts')],
    ['Task', { prompt: 'work' }, 'I changed a.ts', NOTHING],
    ['TodoWrite', { path: 'a.ts' }, 'a.ts', NOTHING],
  ])('%s %j', async (tool, args, content, expected) =>
    expect(await observed({ tool, args, content })).toEqual(expected),
  );

  test.each([
    'bash',
    'execute_bash',
    'shell_command',
    'terminal',
    'cmd_run',
    'run',
    'execute',
    'exec',
    'run_ipython',
    'write_stdin',
  ])('searches the output of %s only on request (decision C8)', async (tool) => {
    const call = { tool, args: { command: 'ls; cat a.ts' }, content: 'a.ts b.ts c.ts' };
    expect(await observed(call)).toEqual(NOTHING);
    expect(await observed(call, { mineShell: true })).toEqual(named('a.ts', 'b.ts'));
  });

  test.each<[string, string, readonly string[]]>([
    ['ls src', 'a.ts\nb.ts\nlib', ['src/a.ts']],
    ['ls src/', 'a.ts', ['src/a.ts']],
    ['ls -C src', 'a.ts  b.ts  lib', ['src/a.ts']],
    [
      'ls -la src | head -3',
      '-rw-r--r-- 1 u g 8 Jan  1 10:00 a.ts\n-rw-r--r-- 1 u g 8 Jan  1 10:00 my file.ts',
      ['src/a.ts', 'src/my file.ts'],
    ],
    ['cd src && ls', 'a.ts\nb.ts', ['src/a.ts']],
    ['cd src && ls lib; echo done', 'c.ts\ndone', ['src/lib/c.ts']],
    ['bash -lc "ls src"', 'a.ts\nb.ts', ['src/a.ts']],
    ['ls src src/lib', 'src:\na.ts\nb.ts\n\nsrc/lib:\na.ts\nc.ts', ['src/a.ts', 'src/lib/c.ts']],
    ['ls -R src', 'src:\na.ts\nlib\n\nsrc/lib:\nc.ts', ['src/a.ts', 'src/lib/c.ts']],
    ['ls src; ls src/lib', 'a.ts\nlib\nc.ts', ['src/a.ts', 'src/lib/c.ts']],
    ['ls src/a.ts', 'src/a.ts', ['src/a.ts']],
    ['ls *.ts src/*.ts', 'a.ts\nb.ts\nsrc/a.ts', ['a.ts', 'b.ts', 'src/a.ts']],
    ['tree src', 'src\n├── a.ts\n├── b.ts\n└── lib\n    └── c.ts', ['src/a.ts', 'src/lib/c.ts']],
    ['ls src && cat b.ts', 'a.ts\nb.ts', ['src/a.ts', 'b.ts']],
    ['cd src && rg one', 'a.ts:1:one\nb.ts:1:one', ['src/a.ts']],
    ['git -C src ls-files', 'a.ts\nb.ts\nlib/c.ts', ['src/a.ts', 'src/lib/c.ts']],
    ['git -c core.quotePath=off -C src -C lib ls-files', 'a.ts\nc.ts', ['src/lib/c.ts']],
    ['git -C "$DIR" ls-files', 'a.ts', []],
    ['git ls-files', 'a.ts\nsrc/a.ts', ['a.ts', 'src/a.ts']],
    ['ls $DIR', 'a.ts', []],
    ['cd "$DIR" && ls', 'a.ts', []],
    ['ls src > list.txt', 'a.ts', []],
    ['ls gone', 'a.ts', []],
    ['find src -name "*.ts"', 'src/a.ts\nsrc/lib/c.ts', ['src/a.ts', 'src/lib/c.ts']],
    ['if [ -d src ]; then ls', 'a.ts', ['a.ts']],
  ])('lists the contents of the folders that %s names', async (command, content, expected) => {
    expect(await observed({ tool: 'bash', args: { command }, content }, { mineShell: true })).toEqual(
      named(...expected),
    );
  });

  test('reports no effect of a failed call', async () => {
    expect(await observed({ tool: 'file_editor', args: { command: 'view', path: 'a.ts' }, status: 'fail' })).toEqual(
      NOTHING,
    );
  });
});

describe('files that a patch names', () => {
  test('are found in an envelope and in a diff', () => {
    const input =
      '*** Begin Patch\n*** Update File: src/a.ts\n*** Move to: src/b.ts\n@@\n-x\n+y\n*** Add File: new ' +
      'file.ts\n*** Delete File: c\n*** End Patch';
    expect(patchPaths({ input })).toEqual(['src/a.ts', 'src/b.ts', 'new file.ts', 'c']);
    expect(patchPaths({ command: ['apply_patch', input] })).toHaveLength(4);
    expect(patchPaths({ diff: '--- a/x.ts\t2020\n+++ b/x.ts\n@@ -1 +1 @@\n--- no header\n' })).toContain('x.ts');
    expect(patchPaths({ diff: '--- /dev/null\n+++ b/y.ts\n' })).toEqual(['y.ts']);
  });
});
