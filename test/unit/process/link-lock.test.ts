import { createHash } from 'node:crypto';
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { FILES, LINKS, removeDeadLinkLocks, withLinkLock } from '../../../src/process/link-lock.js';
import { identifySelf } from '../../../src/process/process-identity.js';
import { type AskedProcess, buildProgram, startProgram } from '../../support/asked-process.js';

const PROGRAM = `
import { appendFile, readFile } from "node:fs/promises";
import { FILES, LINKS, withLinkLock } from "./process/link-lock.js";
const kind = process.env.KIND === 'file' ? FILES : LINKS;
const answer = {
  hold: async ([path]) => withLinkLock(path, { kind, limitMs: 60_000 }, () => {
    process.send({ value: 'held' });
    return new Promise(() => setInterval(() => {}, 1e6));
  }),
  append: async ([path, file]) => withLinkLock(path, { kind, limitMs: 60_000 }, async () => {
    const before = await readFile(file, 'utf8');
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (await readFile(file, 'utf8') !== before) throw new Error('two are inside');
    await appendFile(file, '.');
  }),
};`;

const DEAD = JSON.stringify({ pid: 2 ** 22 + 1, started: 'x', token: 't' });

const lay = {
  link: (content: string, path: string): Promise<void> => symlink(content, path),
  file: (content: string, path: string): Promise<void> => writeFile(path, content),
};

describe.each([
  ['link', LINKS],
  ['file', FILES],
] as const)('a lock that is a %s, beside what it guards', (name, kind) => {
  let programs: string;
  let program: string;
  let folder: string;
  const processes: AskedProcess[] = [];
  const start = async (): Promise<AskedProcess> => {
    const started = await startProgram(program, { env: { ...process.env, KIND: name } });
    processes.push(started);
    return started;
  };
  const path = (): string => join(folder, 'a.lock');
  const enter = <T>(work: () => Promise<T>, limitMs = 60_000): Promise<T> =>
    withLinkLock(path(), { kind, limitMs }, work);

  beforeAll(async () => {
    programs = await mkdtemp(join(tmpdir(), 'palimpsest-link-lock-program-'));
    program = await buildProgram(programs, 'link-lock-owner', PROGRAM);
  });
  afterAll(() => rm(programs, { recursive: true, force: true }));
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'palimpsest-link-lock-'));
  });
  afterEach(async () => {
    await Promise.all(processes.splice(0).map((one) => one.kill()));
    await rm(folder, { recursive: true, force: true });
  });

  test('has one owner at a time, and is free after an error', async () => {
    let inside = 0;
    const counts = await Promise.all(
      Array.from({ length: 6 }, () =>
        enter(async () => {
          inside += 1;
          const now = inside;
          await kind.read(path());
          inside -= 1;
          return now;
        }),
      ),
    );
    expect(counts).toEqual([1, 1, 1, 1, 1, 1]);
    await expect(enter(() => Promise.reject(new Error('inside')))).rejects.toThrow('inside');
    expect(await readdir(folder)).toEqual([]);
  });

  test.each([
    ['a dead process', async () => DEAD],
    [
      'an earlier process with this pid',
      async () => JSON.stringify({ ...(await identifySelf()), started: 'earlier', token: 't' }),
    ],
  ])('is taken over from %s', async (_name, content) => {
    await lay[name](await content(), path());
    expect(await enter(async () => 'done')).toBe('done');
    expect(await readdir(folder)).toEqual([]);
  });

  test('is taken over from a process that was killed during a takeover', async () => {
    await lay[name](DEAD, path());
    await lay[name](DEAD, `${path()}.${createHash('sha256').update(DEAD).digest('hex').slice(0, 16)}`);
    expect(await enter(async () => 'done')).toBe('done');
    expect(await readdir(folder)).toEqual([]);
  });

  test('never has two owners while processes take over from killed ones', async () => {
    const file = join(folder, 'log');
    await appendFile(file, '');
    const contenders = await Promise.all(Array.from({ length: 4 }, start));
    for (let round = 1; round <= 10; round++) {
      const owner = await start();
      expect((await owner.ask('hold', path())).value).toBe('held');
      const work = contenders.map((one) => one.ask('append', path(), file));
      await owner.kill();
      expect(await Promise.all(work)).toEqual([{}, {}, {}, {}]);
      expect((await readFile(file, 'utf8')).length).toBe(4 * round);
    }
    expect(await readdir(folder)).toEqual(['log']);
  });

  test('times out at the limit or when the caller gives up', async () => {
    const owner = await start();
    await owner.ask('hold', path());
    await expect(enter(async () => 'never', 60)).rejects.toMatchObject({
      code: 'held',
      message: expect.stringContaining(String(owner.pid)),
    });
    const abort = new AbortController();
    const aborted = withLinkLock(path(), { kind, limitMs: 60_000, signal: abort.signal }, async () => 'never');
    abort.abort();
    await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('is refused if a file or folder has its name, which stays', async () => {
    await writeFile(path(), 'mine');
    await expect(enter(async () => 'never')).rejects.toMatchObject({ code: 'occupied' });
    await rm(path());
    await mkdir(path());
    await expect(enter(async () => 'never')).rejects.toMatchObject({ code: 'occupied' });
  });

  test('is removed if its owner is dead and its name is one of ours', async () => {
    const owner = await start();
    await owner.ask('hold', path());
    await lay[name](DEAD, join(folder, 'b.lock'));
    await lay[name](DEAD, join(folder, 'other'));
    await removeDeadLinkLocks(folder, (one) => one.endsWith('.lock'), kind);
    expect((await readdir(folder)).sort()).toEqual(['a.lock', 'other']);
  });
});

test('a link lock is taken over from a link that leads to an endless file', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'palimpsest-link-lock-'));
  await symlink('/dev/zero', join(folder, 'a.lock'));
  expect(await withLinkLock(join(folder, 'a.lock'), { limitMs: 60_000 }, async () => 'done')).toBe('done');
  expect(await readdir(folder)).toEqual([]);
  await rm(folder, { recursive: true });
});
