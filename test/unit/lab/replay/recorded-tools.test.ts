import { describe, expect, test } from '@jest/globals';
import { recordedTool } from '../../../../src/lab/replay/recorded-tools.js';

const acts = (tool: string, args: Record<string, unknown>, output = '', truncated = false) =>
  recordedTool(tool).acts({ args, output, truncated });

describe('recorded tools', () => {
  test.each([
    ['Read', 'read'],
    ['read_file', 'read'],
    ['mcp__fs__read_file', 'read'],
    ['Edit', 'edit'],
    ['MultiEdit', 'edit'],
    ['str_replace_editor', 'edit'],
    ['Write', 'write'],
    ['apply_patch', 'patch'],
    ['Glob', 'glob'],
    ['Grep', 'grep'],
    ['list_directory', 'list'],
    ['exec_command', 'shell'],
    ['Bash', 'shell'],
    ['TodoWrite', 'other'],
  ])('include %s of the kind %s', (name, kind) => {
    expect(recordedTool(name).kind).toBe(kind);
  });

  test('show the whole file without line numbers for a read without a range', () => {
    expect(acts('Read', { file_path: '/p/a.ts' }, '     1→one\n     2→two')).toEqual([
      { kind: 'show', path: '/p/a.ts', text: 'one\ntwo', startLine: 1, whole: true },
    ]);
    expect(acts('read', { path: 'a.ts' }, 'one\n\n<system-reminder>be careful</system-reminder>')).toMatchObject([
      { text: 'one', whole: true },
    ]);
  });

  test('keep a part of a file as a part', () => {
    expect(acts('Read', { file_path: 'a.ts', offset: 10, limit: 2 }, '    10→x\n    11→y')).toMatchObject([
      { startLine: 10, whole: false },
    ]);
    expect(acts('read', { path: 'a.ts', limit: 5 }, 'x')).toMatchObject([{ whole: false }]);
    expect(acts('str_replace_editor', { command: 'view', path: 'a.ts', view_range: [3, 4] }, 'x\ny')).toMatchObject([
      { startLine: 3, whole: false },
    ]);
  });

  test('learn only that the file exists from a result that mentions an omission', () => {
    expect(acts('read', { path: 'a.ts' }, 'x\n[120 more lines in file. Use offset=50 to continue]')).toEqual([
      { kind: 'name', path: 'a.ts' },
    ]);
    expect(acts('read', { path: 'a.ts' }, 'x', true)).toEqual([{ kind: 'name', path: 'a.ts' }]);
    expect(acts('Read', { file_path: 'a.png' }, '[image image/png 300 bytes]')).toEqual([
      { kind: 'name', path: 'a.png' },
    ]);
  });

  test('read an empty file as whole', () => {
    expect(
      acts(
        'Read',
        { file_path: 'a.ts' },
        '<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>',
      ),
    ).toMatchObject([{ text: '', whole: true }]);
  });

  test('read edits from the arguments of every agent', () => {
    const replace = (from: string, to: string, all = false) => [
      { kind: 'replace', path: 'a', replacements: [{ from, to, all }] },
    ];
    expect(acts('Edit', { file_path: 'a', old_string: 'x', new_string: 'y', replace_all: true })).toEqual(
      replace('x', 'y', true),
    );
    expect(acts('edit', { path: 'a', oldText: 'x', newText: 'y' })).toEqual(replace('x', 'y'));
    expect(acts('str_replace_editor', { command: 'str_replace', path: 'a', old_str: 'x', new_str: 'y' })).toEqual(
      replace('x', 'y'),
    );
    expect(acts('replace', { file_path: 'a', old_string: 'x', new_string: 'y' })).toEqual(replace('x', 'y'));
    expect(acts('MultiEdit', { file_path: 'a', edits: [{ old_string: 'x', new_string: 'y' }] })).toEqual(
      replace('x', 'y'),
    );
    expect(acts('str_replace_editor', { command: 'insert', path: 'a', insert_line: 3, new_str: 'z' })).toEqual([
      { kind: 'insert', path: 'a', afterLine: 3, text: 'z' },
    ]);
    expect(acts('edit', { path: 'a', start_line: 2, end_line: 3, replacement_text: 'z' })).toEqual([
      { kind: 'range', path: 'a', first: 2, last: 3, text: 'z' },
    ]);
    expect(acts('str_replace_editor', { command: 'undo_edit', path: 'a' })).toEqual([{ kind: 'undo', path: 'a' }]);
    expect(acts('editor', { path: 'a', old_text: 'x', new_text: 'y' })).toEqual(replace('x', 'y'));
    expect(acts('editor', { path: 'a', new_text: 'all of it' })).toEqual([
      { kind: 'write', path: 'a', text: 'all of it' },
    ]);
  });

  test.each(['constructor', 'toString', '__proto__'])('treat an editor command called %s as unknown', (command) => {
    expect(acts('str_replace_editor', { command, path: 'a' })).toEqual([{ kind: 'anything' }]);
  });

  test('leave the file of an incomprehensible edit unknown, and all files if it names none', () => {
    expect(acts('Edit', { file_path: 'a' })).toEqual([{ kind: 'change', path: 'a' }]);
    expect(acts('edit', { start_line: 1, end_line: 2 })).toEqual([{ kind: 'anything' }]);
    expect(acts('apply_patch', { input: 'no envelope' })).toEqual([{ kind: 'anything' }]);
  });

  test('split a patch into one act per file', () => {
    const input = [
      '*** Begin Patch',
      '*** Add File: n',
      '+x',
      '*** Update File: u',
      '@@',
      '-a',
      '+b',
      '*** Delete File: d',
      '*** End Patch',
    ].join('\n');
    expect(acts('apply_patch', { input }).map(({ kind }) => kind)).toEqual(['write', 'update', 'delete']);
  });

  test('take file names from listings only if these distinguish folders', () => {
    expect(acts('ls', { path: 'src' }, 'a.ts\ndeep/\nb.ts')).toEqual([
      { kind: 'list', paths: ['src/a.ts', 'src/b.ts'] },
    ]);
    expect(acts('ls', { path: 'src' }, 'a.ts\ndeep')).toEqual([{ kind: 'list', paths: [] }]);
    expect(acts('Glob', { pattern: '**/*.ts' }, '/p/a.ts\n/p/b.ts')).toEqual([
      { kind: 'list', paths: ['/p/a.ts', '/p/b.ts'] },
    ]);
    expect(acts('Glob', { pattern: '*.zz' }, 'No files found')).toEqual([{ kind: 'list', paths: [] }]);
  });

  test('take the files of the matches from searches', () => {
    expect(
      acts('Grep', { pattern: 'x', output_mode: 'content', path: 'src' }, 'src/a.ts:3:x = 1\nsrc/b.ts-4-y'),
    ).toEqual([{ kind: 'list', paths: ['src/a.ts', 'src/b.ts'] }]);
    expect(acts('Grep', { pattern: 'x' }, 'Found 2 files\n/p/a.ts\n/p/b.ts')).toEqual([
      { kind: 'list', paths: ['/p/a.ts', '/p/b.ts'] },
    ]);
  });

  test('apply a patch that a shell was given as words or as a script', () => {
    const patch = '*** Begin Patch\n*** Add File: a.ts\n+one\n*** End Patch';
    const write = [{ kind: 'write', path: 'a.ts', text: 'one\n' }];
    expect(acts('shell', { command: ['apply_patch', patch] })).toEqual(write);
    expect(acts('shell', { command: ['bash', '-lc', `apply_patch <<'EOF'\n${patch}\nEOF`] })).toEqual(write);
    expect(acts('exec_command', { cmd: `apply_patch <<'EOF'\n${patch}\nEOF` })).toEqual(write);
    expect(acts('shell', { command: ['apply_patch', 'no patch'] })).toEqual([{ kind: 'anything' }]);
  });

  test('use shell output if it is the output of one command', () => {
    expect(
      acts(
        'exec_command',
        { cmd: 'cat a.ts' },
        'Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\none\ntwo\n',
      ),
    ).toEqual([{ kind: 'show', path: 'a.ts', text: 'one\ntwo\n', startLine: 1, whole: true }]);
    expect(acts('bash', { command: 'cat a.ts && cat b.ts' }, 'one\n')).toEqual([
      { kind: 'name', path: 'a.ts' },
      { kind: 'name', path: 'b.ts' },
    ]);
    expect(acts('bash', { command: 'cat a.ts' }, 'cat: a.ts: No such file or directory')).toEqual([]);
    expect(acts('bash', { command: 'cat a.ts' }, '<returncode>0</returncode>\n<output>\none\n</output>')).toMatchObject(
      [{ text: 'one\n', whole: true }],
    );
    expect(
      acts('shell', { command: ['bash', '-lc', 'cat a.ts'] }, '{"output":"one\\n","metadata":{"exit_code":0}}'),
    ).toMatchObject([{ text: 'one\n' }]);
    expect(
      acts('shell', { command: ['bash', '-lc', 'rm a.ts'] }, '{"output":"no","metadata":{"exit_code":1}}'),
    ).toEqual([{ kind: 'change', path: 'a.ts' }]);
  });

  test('end the file after fewer lines than requested', () => {
    expect(acts('bash', { command: "sed -n '1,200p' a.ts" }, 'one\ntwo\n')).toEqual([
      { kind: 'show', path: 'a.ts', text: 'one\ntwo\n', startLine: 1, whole: true, total: 2 },
    ]);
    expect(acts('bash', { command: "sed -n '1,2p' a.ts" }, 'one\ntwo\n')).toEqual([
      { kind: 'show', path: 'a.ts', text: 'one\ntwo\n', startLine: 1, whole: false },
    ]);
    expect(acts('bash', { command: "sed -n '5,9p' a.ts" }, 'five\n')).toMatchObject([
      { startLine: 5, whole: false, total: 5 },
    ]);
  });

  test('treat a cut output as a part with unknown ends', () => {
    expect(acts('bash', { command: 'cat a.ts' }, 'one\n…200 tokens truncated…\ntwo\n')).toEqual([
      { kind: 'name', path: 'a.ts' },
    ]);
  });

  test('do nothing when a running program is viewed, and may do anything when it gets input', () => {
    expect(acts('write_stdin', { session_id: 1, chars: '' })).toEqual([]);
    expect(acts('write_stdin', { session_id: 1, chars: 'y\n' })).toEqual([{ kind: 'anything' }]);
  });
});
