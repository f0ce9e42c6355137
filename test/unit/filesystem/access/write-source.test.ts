import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, chown, link, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { AllowedRoots } from '../../../../src/filesystem/access/roots.js';
import { changeSource, removeSource, writeSource } from '../../../../src/filesystem/access/write-source.js';
import { canonicalPath, sha256 } from '../../../../src/objects/ids.js';
import { type AskedProcess, buildProgram, startProgram } from '../../../support/asked-process.js';
import { type TempFolder, tempFolder, unprivileged } from '../temp-folder.js';

const sha = (text: string) => sha256(createHash('sha256').update(text).digest('hex'));

let folder: TempFolder;
let roots: AllowedRoots;

beforeEach(async () => {
  folder = await tempFolder();
  roots = await AllowedRoots.open([folder.inside]);
});
afterEach(() => folder.remove());

const inside = (name: string) => canonicalPath(join(folder.inside, name));
const text = (path: string) => readFile(path, 'utf8');

describe('writing', () => {
  test('creates a file in new folders and returns hash, size and time from disk', async () => {
    const written = await writeSource(roots, inside('a/b/c.txt'), { content: 'grün\r\n' });
    const stats = await stat(inside('a/b/c.txt'));
    expect(written).toEqual({
      path: inside('a/b/c.txt'),
      fileHash: sha('grün\r\n'),
      size: 7,
      mtimeMs: Math.floor(stats.mtimeMs),
      created: true,
    });
    expect(await text(inside('a/b/c.txt'))).toBe('grün\r\n');
    expect(await readdir(inside('a/b'))).toEqual(['c.txt']);
  });

  test('keeps mode and owner of an existing file; writes CRLF and a byte order mark as given', async () => {
    const file = await folder.put('root/run.sh', 'old');
    await chmod(file, 0o751);
    if (process.geteuid?.() === 0) await chown(file, 1234, 4321);
    const before = await stat(file);
    expect((await writeSource(roots, inside('run.sh'), { content: '\ufeffa\r\nb' })).created).toBe(false);
    const after = await stat(file);
    expect([after.mode, after.uid, after.gid]).toEqual([before.mode, before.uid, before.gid]);
    expect(await readFile(file)).toEqual(Buffer.from('\ufeffa\r\nb'));
  });

  test('writes bytes and empty content, and leaves the old content to another hard link', async () => {
    await writeSource(roots, inside('x.bin'), { content: Buffer.from([0, 255]) });
    await link(inside('x.bin'), join(folder.inside, 'y.bin'));
    await writeSource(roots, inside('x.bin'), { content: '' });
    expect(await readFile(inside('x.bin'))).toEqual(Buffer.alloc(0));
    expect(await readFile(inside('y.bin'))).toEqual(Buffer.from([0, 255]));
  });

  test('never shows a reader a half-written file', async () => {
    const path = inside('a.txt');
    await writeSource(roots, path, { content: 'a'.repeat(300_000) });
    const writing = (async () => {
      for (let round = 0; round < 30; round += 1)
        await writeSource(roots, path, { content: 'ab'.charAt(round % 2).repeat(300_000) });
    })();
    let finished = false;
    const done = writing.then(() => {
      finished = true;
    });
    while (!finished) {
      const seen = await text(path);
      expect([seen.length, new Set(seen).size]).toEqual([300_000, 1]);
    }
    await done;
  });
});

describe('expectations on the file before a write', () => {
  test('absent: keeps an existing file', async () => {
    await writeSource(roots, inside('a.txt'), { content: 'first', expected: 'absent' });
    await expect(writeSource(roots, inside('a.txt'), { content: 'second', expected: 'absent' })).rejects.toMatchObject({
      code: 'exists',
    });
    expect(await text(inside('a.txt'))).toBe('first');
  });

  test('absent: lets exactly one of many concurrent writers win', async () => {
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, (_, index) =>
        writeSource(roots, inside('one.txt'), { content: `${index}`, expected: 'absent' }),
      ),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await readdir(folder.inside)).toEqual(['one.txt']);
  });

  test('a hash: refuses other bytes or a missing file as changed', async () => {
    await folder.put('root/a.txt', 'v1');
    await writeSource(roots, inside('a.txt'), { content: 'v2', expected: sha('v1') });
    await expect(writeSource(roots, inside('a.txt'), { content: 'v3', expected: sha('v1') })).rejects.toMatchObject({
      code: 'changed-underneath',
    });
    await expect(writeSource(roots, inside('none.txt'), { content: 'x', expected: sha('v1') })).rejects.toMatchObject({
      code: 'changed-underneath',
    });
    expect(await text(inside('a.txt'))).toBe('v2');
    expect(await readdir(folder.inside)).toEqual(['a.txt']);
  });
});

describe('refused writes', () => {
  test('include a folder, a link, a file in place of a folder, a root, an outside path, a lone surrogate', async () => {
    await mkdir(inside('d'));
    await folder.put('root/file', 'x');
    await symlink(join(folder.outside, 'new.txt'), inside('dangling'));
    await symlink(folder.outside, inside('dir-link'));
    const codes: readonly (readonly [string, string])[] = [
      [inside('d'), 'is-directory'],
      [inside('dangling'), 'not-regular'],
      [inside('file/x'), 'not-regular'],
      [inside('dir-link/x.txt'), 'changed-underneath'],
      [folder.inside, 'outside-roots'],
      [join(folder.outside, 'x'), 'outside-roots'],
    ];
    for (const [path, code] of codes) {
      const outcome = await writeSource(roots, canonicalPath(path), { content: 'x' }).catch((error: unknown) => error);
      expect([path, outcome]).toMatchObject([path, { code }]);
    }
    await expect(writeSource(roots, inside('s.txt'), { content: '\ud83d' })).rejects.toMatchObject({
      code: 'not-text',
    });
    expect(await readdir(folder.outside)).toEqual([]);
    expect(await readdir(folder.inside)).toEqual(['d', 'dangling', 'dir-link', 'file']);
  });

  test('include a read-only file and a folder without permission', async () => {
    await chmod(folder.base, 0o755);
    await chmod(await folder.put('root/locked.txt', 'x'), 0o444);
    await chmod(folder.inside, 0o777);
    await mkdir(inside('closed'), { mode: 0o755 });
    await unprivileged(async () => {
      await expect(writeSource(roots, inside('locked.txt'), { content: 'y' })).rejects.toMatchObject({
        code: 'no-permission',
      });
      await expect(writeSource(roots, inside('closed/a.txt'), { content: 'y' })).rejects.toMatchObject({
        code: 'no-permission',
      });
      await expect(writeSource(roots, inside('closed/new/a.txt'), { content: 'y' })).rejects.toMatchObject({
        code: 'no-permission',
      });
    });
    expect(await text(inside('locked.txt'))).toBe('x');
  });
});

/** Swaps a folder for a link to the outside and back until its input ends. */
const SWAPPER = `
const fs = require('node:fs');
const [dir, outside] = process.argv.slice(1);
let on = true;
process.stdin.on('end', () => { on = false; }).resume();
process.stdout.write('go');
(function round() {
  for (let i = 0; i < 100; i += 1) {
    fs.renameSync(dir, dir + '.kept'); fs.symlinkSync(outside, dir);
    fs.unlinkSync(dir); fs.renameSync(dir + '.kept', dir);
  }
  if (on) setImmediate(round);
})();`;

describe('a folder swapped for a link during the writing', () => {
  test('never writes outside', async () => {
    const dir = inside('d');
    await mkdir(dir);
    const swapper = spawn(process.execPath, ['-e', SWAPPER, dir, folder.outside], {
      stdio: ['pipe', 'pipe', 'ignore'],
    });
    const exited = new Promise((done) => swapper.once('exit', done));
    await new Promise((ready) => swapper.stdout.once('data', ready));
    const outcomes = new Set<string>();
    const until = Date.now() + 1200;
    for (let round = 0; Date.now() < until; round += 1) {
      const outcome = await writeSource(roots, canonicalPath(join(dir, `f${round % 5}.txt`)), { content: 'x' }).catch(
        (error: unknown) => error,
      );
      outcomes.add(outcome instanceof Error ? String((outcome as { readonly code?: string }).code) : 'written');
    }
    swapper.stdin.end();
    await exited;
    expect(await readdir(folder.outside)).toEqual([]);
    expect(outcomes).toContain('written');
    await writeFile(join(folder.outside, 'kept'), '');
  });
});

/** Adds a line to a file like an edit: reads it, then writes the old text plus the line. */
const PROGRAM = `
import { readFile } from "node:fs/promises";
import { createHash } from "node:crypto";
import { AllowedRoots } from "./filesystem/access/roots.js";
import { changeSource } from "./filesystem/access/write-source.js";
const answer = {
  add: async ([root, path, line]) => changeSource(await AllowedRoots.open([root]), { path }, async (write) => {
    const before = await readFile(path, 'utf8');
    await write(before + line + '\\n', createHash('sha256').update(before).digest('hex'));
    return true;
  }),
  stop: async ([root, path]) => {
    const forever = () => { process.send({ value: 'inside' }); return new Promise(() => setInterval(() => {}, 1e6)); };
    return changeSource(await AllowedRoots.open([root]), { path }, forever);
  },
};`;

describe('concurrent changes of one file (decision F12)', () => {
  let programs: string;
  let program: string;
  const processes: AskedProcess[] = [];
  beforeAll(async () => {
    programs = await mkdtemp(join(tmpdir(), 'palimpsest-write-program-'));
    program = await buildProgram(programs, 'changer', PROGRAM);
  });
  afterAll(() => rm(programs, { recursive: true, force: true }));
  afterEach(async () => {
    await Promise.all(processes.splice(0).map((one) => one.kill()));
  });
  const start = async (): Promise<AskedProcess> => {
    const started = await startProgram(program);
    processes.push(started);
    return started;
  };

  test('lose no write of another process, also after a process was killed inside one', async () => {
    const path = await folder.put('root/log.txt', '');
    const changers = await Promise.all(Array.from({ length: 4 }, start));
    const wanted: string[] = [];
    for (let round = 0; round < 5; round++) {
      const killed = await start();
      expect((await killed.ask('stop', folder.inside, path)).value).toBe('inside');
      const lines = changers.map((_, i) => `${round}-${i}`);
      const added = changers.map((one, i) => one.ask('add', folder.inside, path, lines[i]));
      await killed.kill();
      expect(await Promise.all(added)).toEqual(changers.map(() => ({ value: true })));
      wanted.push(...lines);
    }
    expect((await text(path)).trimEnd().split('\n').sort()).toEqual(wanted.sort());
    expect(await readdir(folder.inside)).toEqual(['log.txt']);
  });

  test('read the previous write within one process; a waiter that gives up neither changes nor blocks', async () => {
    await folder.put('root/a.txt', '');
    const path = inside('a.txt');
    const abort = new AbortController();
    const add = (line: string, signal?: AbortSignal): Promise<unknown> =>
      changeSource(roots, { path, ...(signal === undefined ? {} : { signal }) }, async (write) => {
        if (line === '0') abort.abort();
        const before = await text(path);
        return write(`${before}${line}`, sha(before));
      });
    const [first, given, ...others] = [
      add('0'),
      add('1', abort.signal),
      ...['2', '3', '4', '5'].map((line) => add(line)),
    ];
    await expect(given).rejects.toMatchObject({ name: 'AbortError' });
    await Promise.all([first, ...others]);
    expect(await text(path)).toBe('02345');
  });

  test('make a removal wait for a write and refuse to remove its result', async () => {
    await folder.put('root/a.txt', 'v1');
    const [written, removed] = await Promise.allSettled([
      writeSource(roots, inside('a.txt'), { content: 'v2', expected: sha('v1') }),
      removeSource(roots, inside('a.txt'), sha('v1')),
    ]);
    expect([written.status, removed]).toEqual([
      'fulfilled',
      expect.objectContaining({ reason: expect.objectContaining({ code: 'changed-underneath' }) }),
    ]);
    expect(await text(inside('a.txt'))).toBe('v2');
  });

  test('let one of many writers with the same expected bytes write, and refuse the others', async () => {
    await folder.put('root/a.txt', 'v1');
    const outcomes = await Promise.allSettled(
      Array.from({ length: 8 }, (_, i) =>
        writeSource(roots, inside('a.txt'), { content: `${i}`, expected: sha('v1') }),
      ),
    );
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('name a file in place of the lock and keep it', async () => {
    await writeSource(roots, inside('a.txt'), { content: 'x' });
    const name = `.palimpsest.${createHash('sha256').update('a.txt').digest('hex').slice(0, 16)}.lock`;
    await folder.put(`root/${name}`, 'mine');
    await expect(writeSource(roots, inside('a.txt'), { content: 'y', shown: 'a.txt' })).rejects.toMatchObject({
      code: 'io',
      message: expect.stringContaining(name),
    });
    expect(await text(inside(name))).toBe('mine');
  });
});
