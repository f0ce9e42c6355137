import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { symlink, truncate } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join, relative } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { AllowedRoots } from '../../../../src/filesystem/access/roots.js';
import { type SearchOptions, searchText } from '../../../../src/filesystem/search/search-text.js';
import { canonicalPath } from '../../../../src/objects/ids.js';
import { type TempFolder, tempFolder } from '../temp-folder.js';

let folder: TempFolder;
let roots: AllowedRoots;

beforeEach(async () => {
  folder = await tempFolder();
  const files: Readonly<Record<string, string | Uint8Array>> = {
    '.gitignore': '*.log\nnode_modules/\n',
    '.git/config': 'needle',
    '.hidden': 'needle in a hidden file',
    'a.ts': 'one\ntwo needle\nthree\nfour needle\nfive\nsix\nseven\nneedle last',
    'b.log': 'needle in a log',
    'binary.dat': Buffer.from('needle\n\0\nneedle\n'),
    'crlf.txt': 'first\r\nNeedle\r\nlast\r\n',
    'latin1.txt': Buffer.from([0x6e, 0x65, 0x65, 0x64, 0x6c, 0x65, 0x20, 0xe9, 0x0a]),
    'node_modules/p/i.ts': 'needle',
    'src/deep/c.ts': 'const needle = "a+b(c";\n',
    'src/deep/d.md': '# needle\n',
  };
  for (const [path, content] of Object.entries(files)) await folder.put(`root/${path}`, content);
  await folder.put('outside/secret.ts', 'needle outside');
  await symlink(join(folder.outside, 'secret.ts'), join(folder.inside, 'link.ts'));
  await symlink(folder.outside, join(folder.inside, 'dir-link'));
  execFileSync('mkfifo', [join(folder.inside, 'pipe')]);
  roots = await AllowedRoots.open([folder.inside]);
});
afterEach(() => folder.remove());

describe.each([
  ['with ripgrep', undefined],
  ['in this process', null],
])('a search %s', (_, ripgrep) => {
  const search = (pattern: string, options: Omit<SearchOptions, 'pattern'> = {}, path = folder.inside) =>
    searchText(roots, canonicalPath(path), { pattern, ripgrep, ...options });
  const shown = async (pattern: string, options: Omit<SearchOptions, 'pattern'> = {}, path = folder.inside) =>
    (await search(pattern, options, path)).lines.map(
      (line) => `${relative(folder.inside, line.path)}${line.isContext ? '-' : ':'}${line.line} ${line.text}`,
    );

  test('finds lines in hidden files and in invalid UTF-8; skips ignored and binary files, .git and links', async () => {
    expect(await shown('needle')).toEqual([
      '.hidden:1 needle in a hidden file',
      'a.ts:2 two needle',
      'a.ts:4 four needle',
      'a.ts:8 needle last',
      'latin1.txt:1 needle \ufffd',
      'src/deep/c.ts:1 const needle = "a+b(c";',
      'src/deep/d.md:1 # needle',
    ]);
  });

  test('supports regular expressions, plain text, case, and both kinds of line end', async () => {
    expect(await shown('^n.{4}e$', { ignoreCase: true })).toEqual(['crlf.txt:2 Needle']);
    expect(await shown('a+b(c', { literal: true })).toEqual(['src/deep/c.ts:1 const needle = "a+b(c";']);
    expect(await shown('-e needle', { literal: true })).toEqual([]);
    expect(await shown('(two|six)\\b')).toEqual(['a.ts:2 two needle', 'a.ts:6 six']);
  });

  test('selects files by glob but never ignored ones', async () => {
    expect(await shown('needle', { glob: '*.{ts,md}' })).toHaveLength(5);
    expect(await shown('needle', { glob: 'src/**/*.md' })).toEqual(['src/deep/d.md:1 # needle']);
    expect(await shown('needle', { glob: '*.log' })).toEqual([]);
  });

  test('merges overlapping context and repeats no line', async () => {
    expect(await shown('needle', { context: 1 }, join(folder.inside, 'a.ts'))).toEqual([
      'a.ts-1 one',
      'a.ts:2 two needle',
      'a.ts-3 three',
      'a.ts:4 four needle',
      'a.ts-5 five',
      'a.ts-7 seven',
      'a.ts:8 needle last',
    ]);
  });

  test('counts matching lines toward the limit and reports it', async () => {
    expect(await search('needle', { limit: 2 })).toMatchObject({ matches: 2, truncated: true, timedOut: false });
    expect(await shown('needle', { limit: 1, context: 1 }, join(folder.inside, 'a.ts'))).toEqual([
      'a.ts-1 one',
      'a.ts:2 two needle',
      'a.ts-3 three',
    ]);
    expect(await search('needle', { limit: 7 })).toMatchObject({ matches: 7, truncated: false });
  });

  test('searches a named file although it is ignored', async () => {
    expect(await shown('needle', {}, join(folder.inside, 'b.log'))).toEqual(['b.log:1 needle in a log']);
    expect(await shown('needle', {}, join(folder.inside, 'node_modules'))).toEqual(['node_modules/p/i.ts:1 needle']);
    expect(await search('needle', {}, join(folder.inside, 'binary.dat'))).toMatchObject({
      lines: [],
      leftOut: [{ path: join(folder.inside, 'binary.dat'), bytes: 16, why: 'binary' }],
    });
  });

  test('refuses a named pipe, socket or device of an allowed folder at once', async () => {
    const socket = join(folder.inside, 'socket');
    const server = createServer().listen(socket);
    await once(server, 'listening');
    try {
      await expect(search('x', {}, socket)).rejects.toMatchObject({ code: 'not-regular' });
      expect(await shown('needle last')).toEqual(['a.ts:8 needle last']);
    } finally {
      server.close();
    }
    await expect(search('x', { shown: 'pipe' }, join(folder.inside, 'pipe'))).rejects.toMatchObject({
      code: 'not-regular',
      message: '"pipe" is a fifo, not a regular file',
    });
    const devices = await AllowedRoots.open(['/dev']);
    await expect(searchText(devices, canonicalPath('/dev/zero'), { pattern: 'x', ripgrep })).rejects.toMatchObject({
      code: 'not-regular',
    });
  });

  test('shows no line of a binary file with more matches than the limit, and continues', async () => {
    await folder.put('root/a-binary.dat', Buffer.from(`\0${'needle\n'.repeat(20)}`));
    expect(await search('needle', { limit: 7 })).toMatchObject({ matches: 7, truncated: false });
  });

  test('searches the files of several runs in order, up to the limit', async () => {
    for (let i = 100; i < 300; i += 1) await folder.put(`root/many/${i}.txt`, 'one of many\n');
    const { lines, truncated } = await search('of many', { limit: 150 });
    expect(lines.map(({ path }) => path)).toEqual(
      Array.from({ length: 150 }, (_, i) => join(folder.inside, `many/${i + 100}.txt`)),
    );
    expect(truncated).toBe(true);
  });

  test('omits a byte order mark from the first line, and distinguishes UTF-16 from binary', async () => {
    const utf16 = Buffer.from('\ufeffneedle of äöü\nmore\n', 'utf16le');
    await folder.put('root/marks/a.txt', '\ufeffneedle first\nneedle then\n');
    await folder.put('root/marks/b.txt', utf16);
    await folder.put('root/marks/c.txt', Buffer.from(utf16).swap16());
    const found = ['a.txt:1 needle first', 'a.txt:2 needle then', 'b.txt:1 needle of äöü', 'c.txt:1 needle of äöü'];
    expect(await shown('^needle', {}, join(folder.inside, 'marks'))).toEqual(found.map((line) => `marks/${line}`));
    expect(await shown('of äöü$', {}, join(folder.inside, 'marks/b.txt'))).toEqual(['marks/b.txt:1 needle of äöü']);
  });

  test('reports a skipped file over 64 MiB, in a folder and by its own name', async () => {
    await folder.put('root/large/small.txt', 'needle\n');
    const large = await folder.put('root/large/large.txt', 'needle\n');
    await truncate(large, 64 * 1024 * 1024 + 1);
    const leftOut = [{ path: large, bytes: 64 * 1024 * 1024 + 1, why: 'too-large' }];
    expect(await search('needle', {}, join(folder.inside, 'large'))).toMatchObject({ matches: 1, files: 2, leftOut });
    expect(await search('needle', {}, large)).toMatchObject({ matches: 0, files: 1, leftOut });
  });

  test('reports how many files a glob selected', async () => {
    expect(await search('needle', { glob: '*.none' })).toMatchObject({ matches: 0, files: 0 });
    expect(await search('nowhere', { glob: '*.ts' })).toMatchObject({ matches: 0, files: 2 });
    expect(await search('needle', { glob: '*.none' }, join(folder.inside, 'a.ts'))).toMatchObject({
      matches: 0,
      files: 0,
    });
  });

  test.each([0, 1, 2, 3])('cuts a line at whole characters, %d characters before them', async (count) => {
    await folder.put('root/emoji.txt', `${'x'.repeat(count)}${'😀'.repeat(3_000)}needle here${'😀'.repeat(3_000)}\n`);
    const { lines } = await search('needle here');
    expect(lines).toHaveLength(1);
    expect(lines[0]?.text).toMatch(/^x*(?:😀)+needle here(?:😀)+$/u);
  });

  test('cuts very long lines around the match', async () => {
    await folder.put('root/long.txt', `${'x'.repeat(50_000)}é needle here${'y'.repeat(50_000)}\n`);
    const { lines } = await search('needle here');
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ cut: true, line: 1 });
    expect(lines[0]?.text).toContain('é needle here');
    expect(lines[0]?.text.length).toBe(2000);
  });

  test.each(['foo(', '[z-a]', '(?=a)', 'a\nb', '', 'a\0', '*a'])(
    'refuses the pattern %j with its reason',
    async (pattern) => {
      const error: unknown = await search(pattern).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ name: 'PatternError', code: 'invalid-regex' });
      expect((error as Error).message).toMatch(/cannot be searched for: .{5,}; correct it/);
      expect((error as Error).message).not.toContain('\n');
    },
  );

  test('refuses outside paths, missing paths and broken globs', async () => {
    await expect(search('x', {}, folder.outside)).rejects.toMatchObject({ code: 'outside-roots' });
    await expect(search('x', {}, join(folder.outside, 'secret.ts'))).rejects.toMatchObject({ code: 'outside-roots' });
    await expect(search('x', {}, join(folder.inside, 'none'))).rejects.toMatchObject({ code: 'not-found' });
    await expect(search('x', { glob: '{a' })).rejects.toMatchObject({ code: 'invalid-glob' });
  });

  test('rejects on abort and returns partial results at a time limit', async () => {
    await expect(search('x', { signal: AbortSignal.abort() })).rejects.toMatchObject({ name: 'AbortError' });
    expect(await search('needle', { timeoutMs: 0 })).toMatchObject({ timedOut: true });
    const abort = new AbortController();
    const searching = search('needle', { signal: abort.signal });
    abort.abort();
    await expect(searching).rejects.toMatchObject({ name: 'AbortError' });
  });
});

test('finds the same lines in both ways', async () => {
  const word = fc.constantFrom('a', 'b', 'ab', 'ba', '');
  const text = fc.array(word, { maxLength: 30 }).map((lines) => lines.join('\n'));
  const options = fc.record({ context: fc.nat(3), limit: fc.integer({ min: 1, max: 12 }), ignoreCase: fc.boolean() });
  await fc.assert(
    fc.asyncProperty(
      fc.array(text, { minLength: 1, maxLength: 3 }),
      fc.constantFrom('a', '^a$', 'ab|ba', 'B'),
      options,
      async (texts, pattern, some) => {
        for (const [index, content] of texts.entries()) await folder.put(`root/both/${index}.txt`, content);
        const there = canonicalPath(join(folder.inside, 'both'));
        const [first, second] = [
          await searchText(roots, there, { pattern, ...some }),
          await searchText(roots, there, { pattern, ...some, ripgrep: null }),
        ];
        expect(second).toEqual(first);
      },
    ),
    { numRuns: 40 },
  );
});
