import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import {
  acquireSessionLock,
  LeaseError,
  lockName,
  locksFolder,
  sessionLockOwners,
} from '../../../src/journal/session-lock.js';
import { sessionId } from '../../../src/objects/ids.js';
import { identifyProcess } from '../../../src/process/process-identity.js';
import { type AskedProcess, buildProgram, startProgram } from '../../support/asked-process.js';

const session = sessionId('20260101-abcdefgh');
const mcp = { what: 'palimpsest mcp' };

/** The source of the lock owners' program. It takes one lock, then answers requests about it. */
const PROGRAM = `
import { acquireSessionLock } from "./journal/session-lock.js";
let lock;
const answer = {
  acquire: async ([dataDir, session, options]) => {
    lock = await acquireSessionLock(dataDir, session, options);
    return 'locked';
  },
  ours: async () => lock.isStillOurs(),
  release: async () => lock.release(),
};`;

describe('the lock of a session [decision F5]', () => {
  let programs: string;
  let program: string;
  let dataDir: string;
  const owners: AskedProcess[] = [];
  const start = async (): Promise<AskedProcess> => {
    const owner = await startProgram(program);
    owners.push(owner);
    return owner;
  };
  const lockPath = (generation: number): string =>
    join(locksFolder(dataDir), `${lockName(session)}.${generation}.lock`);
  const leftovers = () => readdir(locksFolder(dataDir));

  beforeAll(async () => {
    programs = await mkdtemp(join(tmpdir(), 'palimpsest-lock-program-'));
    program = await buildProgram(programs, 'lock-owner', PROGRAM);
  });
  afterAll(() => rm(programs, { recursive: true, force: true }));
  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'palimpsest-locks-'));
  });
  afterEach(async () => {
    await Promise.all(owners.splice(0).map((owner) => owner.kill('SIGKILL')));
    await rm(dataDir, { recursive: true, force: true });
  });

  test('locks a free session and leaves nothing behind on release', async () => {
    const lock = await acquireSessionLock(dataDir, session, mcp);
    expect(lock.isStillOurs()).toBe(true);
    expect(await sessionLockOwners(dataDir, session)).toMatchObject([
      { pid: process.pid, what: 'palimpsest mcp', session },
    ]);
    lock.release();
    lock.release();
    expect(lock.isStillOurs()).toBe(false);
    expect(await leftovers()).toEqual([]);
    const again = await acquireSessionLock(dataDir, session, mcp);
    expect([again.isStillOurs(), lock.isStillOurs()]).toEqual([true, false]);
    again.release();
  });

  test('names a living owner in another process with its start and the remedy', async () => {
    const owner = await start();
    await owner.ask('acquire', dataDir, session, { what: 'palimpsest serve' });
    const refused = await acquireSessionLock(dataDir, session, mcp).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(LeaseError);
    const { code, message } = refused as LeaseError;
    expect(code).toBe('held');
    expect(message).toContain(`process ${owner.pid} (palimpsest serve) since 20`);
    expect(message).toContain('--take-over');
    expect((await owner.ask('ours')).value).toBe(true);
    expect(await leftovers()).toHaveLength(1);
  });

  test('takes the lock of a killed process silently', async () => {
    const owner = await start();
    await owner.ask('acquire', dataDir, session, mcp);
    await owner.kill('SIGKILL');
    expect(await sessionLockOwners(dataDir, session)).toEqual([]);
    const lock = await acquireSessionLock(dataDir, session, mcp);
    expect(lock.isStillOurs()).toBe(true);
    expect(await leftovers()).toHaveLength(1);
    lock.release();
  });

  test('does not accept a reused pid as owner', async () => {
    const lock = await acquireSessionLock(dataDir, session, mcp);
    const path = lockPath(1);
    const owner = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
    expect(owner).toMatchObject({ ...(await identifyProcess(process.pid)) });
    await writeFile(path, JSON.stringify({ ...owner, started: `${owner.started}0`, token: 'of-a-dead-process' }));
    expect(lock.isStillOurs()).toBe(false);
    const next = await acquireSessionLock(dataDir, session, mcp);
    expect(next.isStillOurs()).toBe(true);
    next.release();
  });

  test('stays with a stopped process', async () => {
    const owner = await start();
    await owner.ask('acquire', dataDir, session, mcp);
    process.kill(owner.pid, 'SIGSTOP');
    await expect(acquireSessionLock(dataDir, session, mcp)).rejects.toMatchObject({ code: 'held' });
    process.kill(owner.pid, 'SIGCONT');
    expect((await owner.ask('ours')).value).toBe(true);
  });

  test('lets the first owner notice a takeover, and ignores its later release', async () => {
    const owner = await start();
    await owner.ask('acquire', dataDir, session, mcp);
    const lock = await acquireSessionLock(dataDir, session, { ...mcp, takeOver: true });
    expect((await owner.ask('ours')).value).toBe(false);
    await owner.ask('release');
    expect(lock.isStillOurs()).toBe(true);
    const back = await owner.ask('acquire', dataDir, session, { ...mcp, takeOver: true });
    expect(back.value).toEqual(expect.any(String));
    expect(lock.isStillOurs()).toBe(false);
    lock.release();
    expect((await owner.ask('ours')).value).toBe(true);
    expect(await leftovers()).toHaveLength(1);
  });

  test.each([
    ['a free session', false],
    ['a session whose owner was killed', true],
  ])('goes to exactly one of many processes that want %s at once', async (_what, killed) => {
    const contenders = await Promise.all(Array.from({ length: 4 }, start));
    for (let round = 0; round < 15; round++) {
      const wanted = sessionId(`s-${killed}-${round}`);
      if (killed) {
        const first = await start();
        await first.ask('acquire', dataDir, wanted, mcp);
        await first.kill('SIGKILL');
      }
      const answers = await Promise.all(contenders.map((contender) => contender.ask('acquire', dataDir, wanted, mcp)));
      expect(answers.map(({ code }) => code ?? 'locked').sort()).toEqual(['held', 'held', 'held', 'locked']);
      const winner = contenders[answers.findIndex(({ code }) => code === undefined)];
      expect(await sessionLockOwners(dataDir, wanted)).toMatchObject([{ pid: winner?.pid }]);
      expect((await winner?.ask('ours'))?.value).toBe(true);
    }
    expect(await leftovers()).toHaveLength(15);
  });

  test('goes to one of several concurrent takeovers, and the other owners notice', async () => {
    const contenders = await Promise.all(Array.from({ length: 4 }, start));
    for (let round = 0; round < 10; round++) {
      await Promise.all(
        contenders.map((contender) => contender.ask('acquire', dataDir, session, { ...mcp, takeOver: true })),
      );
      const ours = await Promise.all(contenders.map((contender) => contender.ask('ours')));
      expect(ours.filter(({ value }) => value === true)).toHaveLength(1);
      expect(await leftovers()).toHaveLength(1);
    }
  });

  test('has no owner if it is damaged', async () => {
    await mkdir(locksFolder(dataDir), { recursive: true });
    await writeFile(lockPath(7), '{"pid":');
    const lock = await acquireSessionLock(dataDir, session, mcp);
    expect(lock.isStillOurs()).toBe(true);
    expect(await leftovers()).toEqual([`${lockName(session)}.8.lock`]);
    lock.release();
  });

  test('has its own file for each of several sessions with similar names', async () => {
    const names = ['A:b@c', 'a:b@c', 'a.b.c', 'a_b_c', 'x'.repeat(200), `${'x'.repeat(199)}y`];
    const locks = await Promise.all(names.map((name) => acquireSessionLock(dataDir, sessionId(name), mcp)));
    expect(locks.every((lock) => lock.isStillOurs())).toBe(true);
    const files = await leftovers();
    expect(new Set(files.map((name) => name.toLowerCase())).size).toBe(names.length);
    expect(files.every((name) => /^[a-z0-9._-]{1,120}$/.test(name))).toBe(true);
    expect((await sessionLockOwners(dataDir)).map((owner) => owner.session).sort()).toEqual([...names].sort());
    for (const lock of locks) lock.release();
  });

  test('fails with the path of a data folder that is not writable', async () => {
    await writeFile(join(dataDir, 'sessions'), 'a file in the way');
    const refused = await acquireSessionLock(dataDir, session, mcp).catch((error: unknown) => error);
    expect(refused).toMatchObject({ name: 'LeaseError', code: 'unwritable' });
    expect((refused as Error).message).toContain(join(dataDir, 'sessions'));
  });

  test('is cheap to check for ownership', async () => {
    const lock = await acquireSessionLock(dataDir, session, mcp);
    const times = Array.from({ length: 200 }, () => {
      const begin = process.hrtime.bigint();
      for (let i = 0; i < 10; i++) lock.isStillOurs();
      return Number(process.hrtime.bigint() - begin) / 10_000;
    }).sort((a, b) => a - b);
    expect(times[100]).toBeLessThan(200);
    lock.release();
  });
});
