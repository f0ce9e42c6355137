import { describe, expect, test } from '@jest/globals';
import { argumentPaths, patchPaths } from '../../../src/harness/call-paths.js';
import { namedPaths } from '../../../src/harness/listed-paths.js';
import { isWholeRead } from '../../../src/harness/read-extent.js';
import { toolKind } from '../../../src/harness/tool-kinds.js';

describe('tools by their names', () => {
  test.each([
    ['Read', 'read'],
    ['read_file', 'read'],
    ['ReadFile', 'read'],
    ['mcp__filesystem__read_text_file', 'read'],
    ['filesystem.list_directory', 'list'],
    ['LS', 'list'],
    ['Glob', 'find'],
    ['Grep', 'search'],
    ['tree', 'tree'],
    ['str_replace_based_edit_tool', 'write'],
    ['MultiEdit', 'write'],
    ['apply_patch', 'patch'],
    ['Bash', 'shell'],
    ['run_shell_command', 'shell'],
    ['WebFetch', 'other'],
    ['reader', 'other'],
  ])('%s: %s', (name, kind) => expect(toolKind(name)).toBe(kind));
});

describe('the files that a call names', () => {
  test('under the names that tools use', () => {
    expect(argumentPaths({ file_path: '/a' })).toEqual(['/a']);
    expect(argumentPaths({ filePath: 'b', oldString: 'x' })).toEqual(['b']);
    expect(argumentPaths({ paths: ['a', 'b', 'a'] })).toEqual(['a', 'b']);
    expect(argumentPaths({ files: [{ path: 'a' }, { path: 'b' }] })).toEqual(['a', 'b']);
    expect(argumentPaths({ uri: 'file:///x%20y' })).toEqual(['/x y']);
    expect(argumentPaths({ path: 'a\0b', other: '/c' })).toEqual([]);
  });

  test('in a patch', () => {
    const input =
      '*** Begin Patch\n*** Update File: src/a.ts\n*** Move to: src/b.ts\n@@\n-x\n+y\n*** Add File: new file.ts\n*** Delete File: c\n*** End Patch';
    expect(patchPaths({ input })).toEqual(['src/a.ts', 'src/b.ts', 'new file.ts', 'c']);
    expect(patchPaths({ command: ['apply_patch', input] })).toHaveLength(4);
    expect(patchPaths({ diff: '--- a/x.ts\t2020\n+++ b/x.ts\n@@ -1 +1 @@\n--- no header\n' })).toContain('x.ts');
    expect(patchPaths({ diff: '--- /dev/null\n+++ b/y.ts\n' })).toEqual(['y.ts']);
  });
});

describe('whole reads and parts (decision D8)', () => {
  const content = 'one\ntwo\nthree\n';
  test.each([
    ['the text itself', {}, content, true],
    ['with line numbers', {}, '     1\tone\n     2\ttwo\n     3\tthree', true],
    ['between tags', {}, `<file>\n00001| one\n00002| two\n00003| three\n</file>`, true],
    ['a slice', { offset: 2, limit: 1 }, 'two\n', false],
    ['a slice by lines', { start_line: 1, end_line: 2 }, 'one\ntwo\n', false],
    ['a view range', { view_range: [1, 2] }, '1\tone\n2\ttwo', false],
    ['a limit that did not bite', { limit: 2000 }, content, true],
    ['less than the file', {}, 'one\ntwo', false],
    ['a hint that more follows', {}, 'one\ntwo\nthree\n(Showing lines 1-3 of 900. Use offset to continue.)', false],
    ['nothing', {}, '', false],
  ])('%s', (_name, args, output, whole) => expect(isWholeRead(args, output, content)).toBe(whole));

  test('a file that speaks of truncation is not cut for that', () => {
    const text = 'the output was truncated\nuse offset to go on\n';
    expect(isWholeRead({}, text, text)).toBe(true);
    expect(isWholeRead({}, `1\tthe output was truncated\n2\tuse offset to go on`, text)).toBe(true);
  });

  test('an empty file is read whole', () => expect(isWholeRead({}, '(empty file)', '')).toBe(true));
});

describe('what an output names [§5.6, Discovery]', () => {
  const has = (kind: Parameters<typeof namedPaths>[0], output: string) => namedPaths(kind, output).flat();

  test('listings: bare, marked, long', () => {
    expect(has('list', 'a.ts\nsrc/\nlink@\n[FILE] b.ts\n- c.ts')).toEqual(expect.arrayContaining(['a.ts', 'link', 'b.ts', 'c.ts']));
    expect(has('list', '-rw-r--r--  1 root root 12 Nov 21 12:00 my file.txt\ndrwxr-xr-x 2 a b 4096 Nov 21 12:00 src')).toContain(
      'my file.txt',
    );
    expect(has('list', 'a.txt (12 bytes)\nb.txt  1.2 KB')).toEqual(expect.arrayContaining(['a.txt', 'b.txt']));
    expect(has('list', 'src:\na.ts')).toContain('src/a.ts');
  });

  test('trees by indentation and by drawing', () => {
    expect(has('tree', '.\n├── src\n│   ├── a.ts\n│   └── deep\n│       └── b.ts\n└── c.ts')).toEqual(
      expect.arrayContaining(['src/a.ts', 'src/deep/b.ts', 'c.ts']),
    );
    expect(has('list', '- /proj/\n  - src/\n    - a.ts\n  - c.ts')).toEqual(expect.arrayContaining(['/proj/src/a.ts', '/proj/c.ts']));
    expect(has('tree', JSON.stringify([{ name: 'src', type: 'directory', children: [{ name: 'a.ts', type: 'file' }] }]))).toEqual([
      'src/a.ts',
    ]);
  });

  test('searches: with numbers, context, headings, names alone', () => {
    const lines = namedPaths('search', 'src/a.ts:3: const x\nsrc/a.ts-4- y\n/abs/b.ts:\n  Line 3: z\nFile: c.ts\nd.ts\ne.ts:12');
    const first = lines.map(([path]) => path);
    expect(first).toEqual(expect.arrayContaining(['src/a.ts', 'd.ts', 'e.ts']));
    expect(lines.flat()).toEqual(expect.arrayContaining(['/abs/b.ts', 'c.ts']));
    expect(has('find', '["x.ts","y/z.ts"]')).toEqual(['x.ts', 'y/z.ts']);
  });

  test('shell output by words', () => {
    expect(has('shell', "error in 'src/a.ts:12:3': bad\nsee docs/b.md.")).toEqual(expect.arrayContaining(['src/a.ts', 'docs/b.md']));
  });

  test('no line, however odd, breaks it', () => {
    for (const kind of ['list', 'tree', 'find', 'search', 'shell'] as const) {
      expect(() => namedPaths(kind, `\0\n${'x'.repeat(10_000)}\n{"a":\n   \n│\n::::\n\r\n`)).not.toThrow();
    }
  });
});
