import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { type Agent, stdioAgent, temporaryRoot } from '../../support/mcp-clients.js';

let root: string;
let remove: () => Promise<void>;
let agent: Agent;

beforeAll(async () => {
  ({ root, remove } = await temporaryRoot());
  for (const folder of ['src/deep/er', 'build', '.git', 'many']) await mkdir(join(root, folder), { recursive: true });
  const files = {
    '.gitignore': 'build/\n*.log\n',
    'README.md': 'hello\n',
    'src/a.ts': 'let a = 1;\nlet b = 2;\nlet c = a;\n',
    'src/deep/b.ts': 'a\n',
    'src/deep/er/c.js': 'a\n',
    'build/out.js': 'a\n',
    'x.log': 'a\n',
    '.git/config': 'a\n',
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, name), text);
  await symlink('src', join(root, 'alias'));
  await Promise.all(
    Array.from({ length: 2_100 }, (_, index) =>
      writeFile(join(root, 'many', `f${String(index).padStart(4, '0')}.txt`), ''),
    ),
  );
  agent = await stdioAgent(root, ['--allow-bash', '--session', `listings-${process.pid}`]);
});

afterAll(async () => {
  await agent.close();
  await remove();
});

const body = (text: string): readonly string[] => text.split('\n').slice(1);

describe('exploring files', () => {
  test('ls shows everything in a folder, but makes only unhidden, unignored names known (decision C7)', async () => {
    const { text } = await agent.call('ls');
    expect(body(text)).toEqual(['.git/', '.gitignore', 'README.md', 'alias/@', 'build/', 'many/', 'src/', 'x.log']);
    await agent.call('ls', { path: 'build' });
    const { text: known } = await agent.call('context');
    expect([...known.matchAll(/path=(\S+) .*\[unread\]$/gm)].map(([, path]) => path)).toEqual([
      join(root, '.gitignore'),
      join(root, 'README.md'),
    ]);
  });

  test('activate takes a path from ls that an ignore rule kept out of the pool (decision C7)', async () => {
    await writeFile(join(root, 'blob.log'), Buffer.from('\0'));
    const { text, isError } = await agent.call('activate', {
      ids: ['x.log', 'build', 'build/none.js', 'blob.log', '/etc/passwd'],
    });
    expect(isError).toBe(false);
    const lines = text.split('\n');
    expect(lines.slice(0, 5)).toEqual([
      expect.stringMatching(/^activated id=[0-9a-f]+ \S+\/x\.log chars=2$/),
      expect.stringMatching(/^failed: "build" was not found/),
      expect.stringMatching(/^failed: "build\/none\.js" was not found/),
      expect.stringMatching(/^failed: "blob\.log" is not text/),
      expect.stringMatching(/^failed: "\/etc\/passwd" was not found/),
    ]);
    expect(text).toMatch(/\n\[file id=\S+ path=\S+\/x\.log chars=2\]\na$/);
    expect((await agent.call('context')).text).toMatch(
      /\nactive [^\n]*\n(?:id=[^\n]*\n)*id=\S+ type=file path=\S+\/x\.log file_type=log char_count=2/,
    );
  });

  test('find honours ignore rules; paths are as the agent would write them', async () => {
    expect(body((await agent.call('find', { pattern: '*.{ts,js}' })).text)).toEqual([
      'src/a.ts',
      'src/deep/b.ts',
      'src/deep/er/c.js',
    ]);
    expect(body((await agent.call('find', { pattern: '*.ts', path: join(root, 'src') })).text)).toEqual([
      join(root, 'src/a.ts'),
      join(root, 'src/deep/b.ts'),
    ]);
    expect((await agent.call('find', { pattern: '*.zig' })).text).toMatch(/\nNo files below \. match \*\.zig\.$/);
    expect((await agent.call('find', { pattern: '**', limit: 2 })).text).toMatch(
      /\[There are more than 2 files\. Narrow the pattern or give a larger limit\.\]$/,
    );
  });

  test('grep shows path, line and text; lines around a match come once', async () => {
    expect(body((await agent.call('grep', { pattern: 'LET [ac]', path: 'src/a.ts', ignoreCase: true })).text)).toEqual([
      'src/a.ts:1: let a = 1;',
      'src/a.ts:3: let c = a;',
    ]);
    expect(body((await agent.call('grep', { pattern: 'let [ac]', glob: '*.ts', context: 1 })).text)).toEqual([
      'src/a.ts:1: let a = 1;',
      'src/a.ts-2- let b = 2;',
      'src/a.ts:3: let c = a;',
    ]);
    expect(body((await agent.call('grep', { pattern: 'let [ac]', literal: true })).text)).toEqual([
      'No matches found.',
    ]);
    expect((await agent.call('grep', { pattern: 'let', limit: 1 })).text).toContain('[There are more than 1 matches.');
  });

  test('tree indents, counts what is too deep, and honours ignore rules', async () => {
    expect(body((await agent.call('tree', { path: 'src', depth: 2 })).text)).toEqual([
      'deep/',
      ' er/ (1 file)',
      ' b.ts',
      'a.ts',
    ]);
  });

  test('a call discovers at most 2,000 files, and reports that', async () => {
    const { text } = await agent.call('find', { pattern: '*.txt', limit: 5_000 });
    expect(text).toMatch(/\[Only the first 2000 of these 2100 files were added to your pool\.\]/);
    const [, callId] = /Continue: read id=(\S+) offset=\d+\]$/.exec(text) ?? [];
    const [, offset] = /offset=(\d+)\]$/.exec(text) ?? [];
    const rest = await agent.call('read', { id: callId, offset: Number(offset) });
    expect(rest.text).toContain('many/f2099.txt');
    const [, shown = '', more = ''] = /lines=1-(\d+)\/(\d+)/.exec(text) ?? [];
    expect(Number(shown)).toBeLessThan(Number(more));
  });

  test('ls names one continuation, which leads to the last entry', async () => {
    const ways = (text: string): readonly string[] =>
      [...text.matchAll(/Continue: ([^\]]+)\]/g)].map(([, way = '']) => way);
    let { text } = await agent.call('ls', { path: 'many' });
    expect(text).toContain('entries=2100');
    expect(ways(text)).toEqual([expect.stringMatching(/^read id=\S+ offset=\d+$/)]);
    const [, id, offset] = /read id=(\S+) offset=(\d+)/.exec(text) ?? [];
    ({ text } = await agent.call('read', { id, offset: Number(offset) }));
    expect([ways(text), body(text).includes('f2099.txt')]).toEqual([[], true]);
    ({ text } = await agent.call('ls', { path: 'many', limit: 20 }));
    expect(ways(text)).toEqual(['ls path=many limit=2100']);
    ({ text } = await agent.call('ls', { path: 'many', limit: 2_090 }));
    expect(ways(text)).toEqual([expect.stringMatching(/^read id=/)]);
  });

  test('bash shows the end of its output, keeps all of it readable, and reports failures', async () => {
    const { text } = await agent.call('bash', { command: 'seq 1 5000' });
    expect(text.split('\n').length).toBeLessThanOrEqual(2_000);
    const ending = new RegExp(
      '^\\[bash id=(\\S+) exit=0 lines=\\d+-5000/5000\\]\\n[\\s\\S]*\\n5000\\n' +
        '\\[(\\d+) earlier lines\\. All of it: read id=\\1\\]$',
    );
    const [, id, earlier] = ending.exec(text) ?? [];
    expect(Number(earlier)).toBeGreaterThan(3_000);
    expect((await agent.call('read', { id, limit: 2 })).text).toMatch(/lines=1-2\/5000 .*\n1\n2\n/);
    expect((await agent.call('bash', { command: 'true' })).text).toMatch(/\]\n\(no output\)$/);
    expect(await agent.call('bash', { command: 'pwd; exit 3' })).toMatchObject({
      isError: true,
      text: expect.stringMatching(
        new RegExp(`^Error: Command exited with code 3\\.\\n\\[bash id=\\S+ exit=3\\]\\n${root}$`),
      ),
    });
    expect(await agent.call('bash', { command: 'sleep 30', timeout: 0.3 })).toMatchObject({
      isError: true,
      text: expect.stringContaining('Error: Command was killed after 0.3 s.'),
    });
  });
});
