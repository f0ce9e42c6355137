import { appendFile, chmod, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import * as z from 'zod';
import {
  acquireLock,
  type HeldLock,
  livingLockOwner,
  lockFilesAmong,
  namedLockOwner,
  withNamedLock,
} from '../../../src/process/lock.js';
import type { OwnedFile } from '../../../src/process/owned-file.js';
import { identifySelf, type ProcessIdentity, processIdentitySchema } from '../../../src/process/process-identity.js';
import { type AskedProcess, buildProgram, startProgram } from '../../support/asked-process.js';

const schema = processIdentitySchema.extend({ token: z.string() });
type Owner = z.infer<typeof schema>;

/**
 * The program of the processes. Each holds a lock with generations, and writes to a file while it
 * alone holds a lock with a fixed name.
 */
const PROGRAM = `
import { appendFile, readFile } from "node:fs/promises";
import { z } from "zod";
import { acquireLock, withNamedLock } from "./process/lock.js";
import { identifySelf, processIdentitySchema } from "./process/process-identity.js";
const schema = processIdentitySchema.extend({ token: z.string() });
let lock;
const answer = {
  acquire: async ([folder, name, options]) => {
    const self = { ...(await identifySelf()), token: crypto.randomUUID() };
    lock = await acquireLock({ folder, name, schema }, self, options);
    return 'heldBy' in lock ? lock : 'acquired';
  },
  ours: async () => lock.isStillOurs(),
  hold: async ([path]) => withNamedLock(path, { limitMs: 60_000 }, () => {
    process.send({ value: 'held' });
    return new Promise(() => setInterval(() => {}, 1e6));
  }),
  append: async ([path, file]) => withNamedLock(path, { limitMs: 60_000 }, async () => {
    const before = await readFile(file, 'utf8');
    await new Promise((resolve) => setTimeout(resolve, 5));
    if (await readFile(file, 'utf8') !== before) throw new Error('two are inside');
    await appendFile(file, '.');
  }),
};`;

const DEAD = { pid: 2 ** 22 + 1, started: 'x', token: 't' };
const own = async (token: string): Promise<Owner> => ({ ...(await identifySelf()), token });

describe('locks of processes', () => {
  let programs: string;
  let program: string;
  let folder: string;
  const processes: AskedProcess[] = [];
  const start = async (): Promise<AskedProcess> => {
    const started = await startProgram(program);
    processes.push(started);
    return started;
  };

  beforeAll(async () => {
    programs = await mkdtemp(join(tmpdir(), 'palimpsest-lock-program-'));
    program = await buildProgram(programs, 'lock-owner', PROGRAM);
  });
  afterAll(() => rm(programs, { recursive: true, force: true }));
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'palimpsest-lock-'));
  });
  afterEach(async () => {
    await Promise.all(processes.splice(0).map((one) => one.kill()));
    await chmod(folder, 0o700);
    await rm(folder, { recursive: true, force: true });
  });

  describe('with generations', () => {
    const acquire = async (token: string, options = {}): Promise<OwnedFile | HeldLock<Owner>> =>
      acquireLock({ folder, name: 'a', schema }, await own(token), options);
    const acquired = async (token: string, options = {}): Promise<OwnedFile> => {
      const lock = await acquire(token, options);
      if ('heldBy' in lock) throw new Error(`held by ${lock.heldBy?.pid}`);
      return lock;
    };
    const livingOwner = async (): Promise<ProcessIdentity | undefined> =>
      livingLockOwner(lockFilesAmong(folder, await readdir(folder)), schema);

    test('belong to their user alone, name their owner, and leave nothing behind', async () => {
      const lock = await acquired('one');
      expect((await stat(join(folder, 'a.1.lock'))).mode & 0o777).toBe(0o600);
      expect(await livingOwner()).toMatchObject({ pid: process.pid, token: 'one' });
      expect(await acquire('two')).toMatchObject({ heldBy: { token: 'one' } });
      lock.remove();
      lock.remove();
      expect(lock.isStillOurs()).toBe(false);
      expect(await readdir(folder)).toEqual([]);
    });

    test('are taken from a killed process, from a reused pid, and if they are torn', async () => {
      const other = await start();
      expect((await other.ask('acquire', folder, 'a')).value).toBe('acquired');
      expect(await acquire('mine')).toMatchObject({ heldBy: { pid: other.pid } });
      await other.kill();
      (await acquired('of an earlier process with this pid')).isStillOurs();
      await writeFile(join(folder, 'a.2.lock'), JSON.stringify({ ...(await own('t')), started: 'earlier' }));
      await acquired('torn');
      await writeFile(join(folder, 'a.3.lock'), '{"pid": 12');
      const lock = await acquired('mine');
      expect(await readdir(folder)).toEqual(['a.4.lock']);
      expect(lock.isStillOurs()).toBe(true);
    });

    test('show a takeover to the first owner; neither owner removes or empties a foreign lock', async () => {
      const first = await acquired('first');
      const second = await acquired('second', { takeOver: true });
      expect([first.isStillOurs(), second.isStillOurs()]).toEqual([false, true]);
      first.remove();
      first.vacate();
      expect(second.isStillOurs()).toBe(true);
    });

    test('lose their owner if their file has another text of equal length, is replaced, or is gone', async () => {
      const lock = await acquired('first');
      const path = join(folder, 'a.1.lock');
      const text = await readFile(path, 'utf8');
      const looks = [lock.isStillOurs(), lock.isStillOurs()];
      await writeFile(path, text.replace('first', 'other'));
      await utimes(path, new Date(1), new Date(1));
      looks.push(lock.isStillOurs());
      await writeFile(path, text);
      looks.push(lock.isStillOurs(), lock.isStillOurs());
      await writeFile(`${path}.new`, text.replace('first', 'other'));
      await rename(`${path}.new`, path);
      looks.push(lock.isStillOurs());
      await rm(path);
      looks.push(lock.isStillOurs());
      expect(looks).toEqual([true, true, false, true, true, false, false]);
    });

    test('never repeat a generation until they are removed', async () => {
      (await acquired('one', { keepsOlder: true })).vacate();
      expect(await livingOwner()).toBeUndefined();
      const second = await acquired('two', { keepsOlder: true });
      expect((await readdir(folder)).sort()).toEqual(['a.1.lock', 'a.2.lock']);
      expect(await readFile(join(folder, 'a.1.lock'), 'utf8')).toBe('');
      second.remove();
      expect(await readdir(folder)).toEqual([]);
    });

    test.each([{}, { keepsOlder: true }])(
      'go from a killed process to exactly one of several concurrent processes (%j)',
      async (options) => {
        const contenders = await Promise.all(Array.from({ length: 4 }, start));
        for (let round = 0; round < 10; round++) {
          const owner = await start();
          await owner.ask('acquire', folder, `r${round}`, options);
          await owner.kill();
          const answers = await Promise.all(contenders.map((one) => one.ask('acquire', folder, `r${round}`, options)));
          expect(answers.filter(({ value }) => value === 'acquired')).toHaveLength(1);
          const winner = contenders[answers.findIndex(({ value }) => value === 'acquired')];
          expect((await winner?.ask('ours'))?.value).toBe(true);
        }
      },
    );

    test('throw the system’s error in a folder that is not writable', async () => {
      await rm(folder, { recursive: true });
      await writeFile(folder, 'a file in the way');
      await expect(acquire('mine')).rejects.toMatchObject({ code: 'ENOTDIR' });
    });
  });

  describe('with a fixed name', () => {
    const path = (): string => join(folder, 'start.lock');

    test('have one owner at a time and leave nothing behind', async () => {
      let inside = 0;
      let most = 0;
      const enter = (): Promise<void> =>
        withNamedLock(path(), { limitMs: 60_000 }, async () => {
          inside += 1;
          most = Math.max(most, inside);
          await new Promise((resolve) => setImmediate(resolve));
          inside -= 1;
        });
      await Promise.all(Array.from({ length: 8 }, enter));
      expect(most).toBe(1);
      expect(await readdir(folder)).toEqual([]);
    });

    test('know their owner while they are held, and are free after an error', async () => {
      const failing = withNamedLock(path(), { limitMs: 60_000 }, async () => {
        expect((await namedLockOwner(path()))?.pid).toBe(process.pid);
        throw new Error('inside');
      });
      await expect(failing).rejects.toThrow('inside');
      expect(await namedLockOwner(path())).toBeUndefined();
    });

    test.each([
      ['of a dead process', async () => JSON.stringify(DEAD)],
      [
        'of an earlier process with this pid',
        async () => JSON.stringify({ ...(await identifySelf()), started: 'earlier', token: 't' }),
      ],
      ['that is empty', async () => ''],
      ['that is cut off', async () => '{"pid": 12'],
    ])('are taken over if they are %s', async (_name, content) => {
      await writeFile(path(), await content());
      expect(await namedLockOwner(path())).toBeUndefined();
      // A caller that does not wait takes it over, too.
      expect(await withNamedLock(path(), { limitMs: 0 }, async () => 'done')).toBe('done');
      expect(await readdir(folder)).toEqual([]);
    });

    test('are taken over in the middle of a takeover', async () => {
      await writeFile(path(), JSON.stringify(DEAD));
      await writeFile(join(folder, 'start.lock.takeover.1.lock'), JSON.stringify(DEAD));
      expect(await withNamedLock(path(), { limitMs: 60_000 }, async () => 'done')).toBe('done');
      expect(await readdir(folder)).toEqual([]);
    });

    test('never have two processes inside during repeated takeovers from killed ones', async () => {
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

    test('stop waiting for a living owner at the limit or when the caller gives up', async () => {
      const self = await identifySelf();
      await writeFile(path(), JSON.stringify({ ...self, token: 'other' }));
      const waits: number[] = [];
      const limited = withNamedLock(path(), { limitMs: 60, onWait: (pid) => waits.push(pid) }, async () => 'never');
      await expect(limited).rejects.toMatchObject({ code: 'held', message: expect.stringContaining(String(self.pid)) });
      expect(waits).toEqual([self.pid]);
      const abort = new AbortController();
      const aborted = withNamedLock(path(), { limitMs: 60_000, signal: abort.signal }, async () => 'never');
      abort.abort();
      await expect(aborted).rejects.toMatchObject({ name: 'AbortError' });
    });
  });
});
