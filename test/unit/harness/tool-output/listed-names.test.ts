import { describe, expect, test } from '@jest/globals';
import { certainNames, possibleNames } from '../../../../src/harness/tool-output/listed-names.js';

describe('names in an output [§5.6, Discovery]', () => {
  const has = (format: Parameters<typeof possibleNames>[0], output: string) => possibleNames(format, output).flat();

  test('are found in bare, marked and long listings', () => {
    expect(has('listing', 'a.ts\nsrc/\nlink@\n[FILE] b.ts\n- c.ts')).toEqual(
      expect.arrayContaining(['a.ts', 'link', 'b.ts', 'c.ts']),
    );
    expect(
      has('listing', '-rw-r--r--  1 root root 12 Nov 21 12:00 my file.txt\ndrwxr-xr-x 2 a b 4096 Nov 21 12:00 src'),
    ).toContain('my file.txt');
    expect(has('listing', 'a.txt (12 bytes)\nb.txt  1.2 KB')).toEqual(expect.arrayContaining(['a.txt', 'b.txt']));
    expect(has('listing', 'src:\na.ts')).toContain('src/a.ts');
  });

  test('are found in trees drawn by indentation or lines', () => {
    expect(has('listing', '.\n├── src\n│   ├── a.ts\n│   └── deep\n│       └── b.ts\n└── c.ts')).toEqual(
      expect.arrayContaining(['src/a.ts', 'src/deep/b.ts', 'c.ts']),
    );
    expect(has('listing', '- /proj/\n  - src/\n    - a.ts\n  - c.ts')).toEqual(
      expect.arrayContaining(['/proj/src/a.ts', '/proj/c.ts']),
    );
    expect(
      has('listing', JSON.stringify([{ name: 'src', type: 'directory', children: [{ name: 'a.ts', type: 'file' }] }])),
    ).toEqual(['src/a.ts']);
  });

  test('are found in searches with numbers, context, headings, or names alone', () => {
    const lines = possibleNames(
      'matches',
      'src/a.ts:3: const x\nsrc/a.ts-4- y\n/abs/b.ts:\n  Line 3: z\nFile: c.ts\nd.ts\ne.ts:12',
    );
    const first = lines.map(([path]) => path);
    expect(first).toEqual(expect.arrayContaining(['src/a.ts', 'd.ts', 'e.ts']));
    expect(lines.flat()).toEqual(expect.arrayContaining(['/abs/b.ts', 'c.ts']));
    expect(has('paths', '["x.ts","y/z.ts"]')).toEqual(['x.ts', 'y/z.ts']);
  });

  test('are found in shell output by words', () => {
    expect(has('words', "error in 'src/a.ts:12:3': bad\nsee docs/b.md.")).toEqual(
      expect.arrayContaining(['src/a.ts', 'docs/b.md']),
    );
  });

  test('survive any odd line', () => {
    for (const format of ['listing', 'long-listing', 'paths', 'matches', 'words'] as const) {
      expect(() => possibleNames(format, `\0\n${'x'.repeat(10_000)}\n{"a":\n   \n│\n::::\n\r\n`)).not.toThrow();
    }
  });
});

describe('certain names in an output', () => {
  test('are regular files of a long listing, in any time format', () => {
    const lines = [
      'total 8',
      'drwxr-xr-x 2 u g 4096 Nov 21 12:00 deep',
      '-rw-r--r-- 1 u g 3 Nov 21 12:00 a b.ts',
      '-rw-r--r-- 1 u g 3 Nov 21  2023 c.ts',
      '-rw-r--r-- 1 u g 3 2024-11-21 12:00:00.000000000 +0000 d.ts',
    ];
    expect(certainNames('long-listing', lines.join('\n'), { folder: 'src' })).toEqual([
      'src/a b.ts',
      'src/c.ts',
      'src/d.ts',
    ]);
  });

  test('are whole in lines of matches: the numbers in a name are no line number', () => {
    const output = '.entire/logs/2026-01-06-a.log\nlogs/2026-01-06-b.log:3:one\nlogs/2026-01-06-b.log-4-two\nc.ts:7:x';
    expect(certainNames('matches', output)).toEqual(['logs/2026-01-06-b.log', 'c.ts']);
  });

  test('do not come from running text', () => expect(certainNames('words', 'see src/a.ts')).toEqual([]));
});
