import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, link, mkdir, rename, symlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { watchFolder } from '../../../../src/filesystem/tracking/watch-folder.js';
import { unprivileged } from '../temp-folder.js';
import { trackedTemps } from './tracker-folder.js';

const temp = trackedTemps();

describe('detecting changes', () => {
  test('reports a file at once if and only if it differs from its last read', async () => {
    const one = await temp();
    const paths = await Promise.all(['a', 'b', 'c'].map((name) => one.folder.put(`root/${name}`, 'content')));
    await Promise.all(paths.map((path) => utimes(path, 1000, 1000)));
    const [same = '', shorter = '', older = ''] = paths;
    await one.tracker.trackMany([
      { source: one.source(same), known: { size: 7, mtimeMs: 1_000_000 } },
      { source: one.source(shorter), known: { size: 6, mtimeMs: 1_000_000 } },
      { source: one.source(older), known: { size: 7, mtimeMs: 999_999 } },
    ]);
    await one.until(() => one.told.length === 2);
    await one.tracker.sweep();
    await writeFile(same, 'new');
    await one.until(() => one.contents(same).length === 1);
    expect(one.told.map(({ path }) => path).sort()).toEqual([same, shorter, older].sort());
  });

  test('counts a caller’s read as seen unless the tracker has reported something else', async () => {
    const one = await temp();
    const path = await one.folder.put('root/a', 'content');
    await utimes(path, 1000, 1000);
    const known = { size: 7, mtimeMs: 1_000_000 };
    expect(one.tracker.hasSeen(one.source(path), known)).toBe(false);
    await one.tracker.trackMany([{ source: one.source(path), known }]);
    expect(one.tracker.hasSeen(one.source(path), known)).toBe(true);
    expect(one.tracker.hasSeen(one.source(path), { ...known, size: 6 })).toBe(false);
    expect(one.tracker.hasSeen(one.source(path), { ...known, mtimeMs: 999_999 })).toBe(false);
    await writeFile(path, 'another');
    await one.until(() => one.told.length === 1);
    expect(one.tracker.hasSeen(one.source(path), known)).toBe(false);
  });

  test('reports a file that is created later', async () => {
    const one = await temp();
    const path = join(one.folder.inside, 'later.txt');
    await one.tracker.trackMany([{ source: one.source(path) }]);
    expect(one.tracker.state(one.source(path))).toBe('attached');
    await writeFile(path, 'now');
    await one.until(() => one.told.length === 1);
    expect(one.contents(path)).toEqual(['now']);
  });

  test('finds a change through another hard link in the sweep', async () => {
    const one = await temp();
    const [path = ''] = await one.trackFiles('a.txt');
    const elsewhere = join(one.folder.outside, 'b.txt');
    await link(path, elsewhere);
    await one.tracker.sweep();
    await one.until(() => one.told.length === 1);
    await writeFile(elsewhere, 'through the other name');
    await one.tracker.sweep();
    await one.until(() => one.told.at(-1)?.content === 'through the other name');
  });

  test('sweeps by itself', async () => {
    const one = await temp({ sweepMs: 100 });
    const [path = ''] = await one.trackFiles('a.txt');
    const elsewhere = join(one.folder.outside, 'b.txt');
    await link(path, elsewhere);
    await writeFile(elsewhere, 'quietly');
    await one.until(() => one.told.at(-1)?.content === 'quietly');
  });

  test('reports a failed callback and repeats it with the sweep', async () => {
    let failing = true;
    const seen: string[] = [];
    const one = await temp({
      onChange: async ({ path }) => {
        seen.push(path);
        if (failing) throw new Error('database away');
        succeeded();
      },
    });
    let succeeded = (): void => undefined;
    const success = new Promise<void>((resolve) => {
      succeeded = resolve;
    });
    const [path = ''] = await one.trackFiles('a.txt');
    await writeFile(path, 'second');
    await one.until(() => one.notices.length === 1);
    expect(one.notices[0]).toMatch(/a\.txt" changed but could not be processed; .*: database away$/);
    failing = false;
    await one.tracker.sweep();
    await success;
    expect(seen).toEqual([path, path]);
  });
});

describe('many files', () => {
  test('reports all 200 changed files of 1,000 tracked ones, and no others', async () => {
    const one = await temp();
    const names = Array.from({ length: 1000 }, (_, index) => `d${index % 10}/${index}.txt`);
    const paths = await one.trackFiles(...names);
    const changed = paths.filter((_, index) => index % 5 === 0);
    await Promise.all(changed.map((path) => writeFile(path, 'changed')));
    await one.until(() => one.told.length >= 200);
    await one.tracker.sweep();
    expect(one.told.map(({ path }) => path).sort()).toEqual([...changed].sort());
    expect(new Set(one.told.map(({ content }) => content))).toEqual(new Set(['changed']));
  });

  test('reports changes made while the event loop is blocked for 2 s, even if the system lost events', async () => {
    const one = await temp();
    const names = Array.from({ length: 500 }, (_, index) => `${index}.txt`);
    const paths = await one.trackFiles(...names);
    // 20,000 other files overflow the kernel's queue before the tracked ones change.
    const script = `const fs = require('node:fs'); const dir = process.argv[1];
      for (let i = 0; i < 20000; i += 1) fs.writeFileSync(dir + '/noise' + (i % 50), 'x');
      for (let i = 0; i < 500; i += 1) fs.writeFileSync(dir + '/' + i + '.txt', 'changed');`;
    const child = spawn(process.execPath, ['-e', script, one.folder.inside], { stdio: 'ignore' });
    const exited = once(child, 'exit');
    const until = performance.now() + 2000;
    while (performance.now() < until);
    expect(await exited).toEqual([0, null]);
    const changed = (): Set<string> =>
      new Set(one.told.filter(({ content }) => content === 'changed').map(({ path }) => path));
    await one.until(() => changed().size === 500);
    expect(changed()).toEqual(new Set(paths));
  });
});

describe('unwatchable files', () => {
  test('stay orphaned inside a container and outside the roots [§5.8]', async () => {
    const one = await temp();
    const foreign = { ...one.source('/etc/hosts'), filesystemId: 'container' as never };
    const outside = one.source(await one.folder.put('outside/a.txt', 'x'));
    await one.tracker.trackMany([{ source: foreign }, { source: outside }]);
    expect([one.tracker.state(foreign), one.tracker.state(outside)]).toEqual(['orphaned', 'orphaned']);
    expect(one.tracker.status()).toEqual({ attached: 0, orphaned: 2, folders: 0, sweptFolders: 0 });
    for (const source of [foreign, outside]) one.tracker.untrack(source);
    expect(one.tracker.state(foreign)).toBeUndefined();
  });

  test('are orphaned, not deleted, when their mount goes away (decision C5)', async () => {
    const one = await temp({
      mounts: ({ inside }) => [{ agentPrefix: '/workspace', canonicalPrefix: join(inside, 'mnt') }],
    });
    await mkdir(join(one.folder.inside, 'mnt'));
    const [path = ''] = await one.trackFiles('mnt/a.txt');
    await rename(join(one.folder.inside, 'mnt'), join(one.folder.outside, 'mnt'));
    await one.until(() => one.states.length === 1);
    expect(one.tracker.state(one.source(path))).toBe('orphaned');
    await rename(join(one.folder.outside, 'mnt'), join(one.folder.inside, 'mnt'));
    await one.until(() => one.states.length === 2);
    await writeFile(path, 'after');
    await one.until(() => one.contents(path).includes('after'));
    expect(one.contents(path)).not.toContain(undefined);
  });

  test('are orphaned while their folder lacks permission', async () => {
    const one = await temp();
    await chmod(one.folder.base, 0o755);
    const [path = ''] = await one.trackFiles('locked/a.txt');
    await chmod(dirname(path), 0o000);
    await unprivileged(() => one.tracker.sweep());
    expect(one.tracker.state(one.source(path))).toBe('orphaned');
    await chmod(dirname(path), 0o755);
    await one.tracker.sweep();
    expect(one.tracker.state(one.source(path))).toBe('attached');
    await writeFile(path, 'after');
    await one.until(() => one.told.length > 0);
    expect(one.contents(path)).toEqual(['after']);
  });

  test('are not followed through a parent that became a link', async () => {
    const one = await temp();
    const [path = ''] = await one.trackFiles('f/a.txt');
    const away = join(one.folder.outside, 'f');
    await rename(dirname(path), away);
    await symlink(away, dirname(path));
    await one.tracker.sweep();
    expect(one.tracker.state(one.source(path))).toBe('orphaned');
  });

  test('are reported by the canonical path after a change through a linked folder', async () => {
    const one = await temp();
    const [path = ''] = await one.trackFiles('real/a.txt');
    await symlink(dirname(path), join(one.folder.inside, 'linked'));
    await writeFile(join(one.folder.inside, 'linked', 'a.txt'), 'through the link');
    await one.until(() => one.told.length === 1);
    expect(one.contents(path)).toEqual(['through the link']);
  });
});

describe('limits of the system', () => {
  const noSpace = (folder: string): Error =>
    Object.assign(new Error(`ENOSPC: System limit for number of file watchers reached, watch '${folder}'`), {
      code: 'ENOSPC',
      syscall: 'watch',
    });

  test('fall back to the sweep with one notice when watches run out, until some are free', async () => {
    let left = false;
    const one = await temp({
      sweepMs: 60_000,
      watch: async (folder, listener) => {
        if (!left) throw noSpace(folder);
        return watchFolder(folder, listener);
      },
    });
    const [path = ''] = await one.trackFiles('a/1.txt', 'b/2.txt');
    expect(one.notices).toHaveLength(1);
    expect(one.notices[0]).toMatch(/^no more folders can be watched \(ENOSPC\).* every 60 s/);
    expect(one.tracker.status()).toEqual({ attached: 2, orphaned: 0, folders: 2, sweptFolders: 2 });
    await writeFile(path, 'second');
    await one.tracker.sweep();
    await one.until(() => one.contents(path).includes('second'));
    left = true;
    await one.tracker.sweep();
    expect(one.tracker.status().sweptFolders).toBe(0);
    await writeFile(path, 'third');
    await one.until(() => one.contents(path).includes('third'));
    expect(one.notices).toHaveLength(1);
  });

  test('orphan on any other watch failure', async () => {
    const one = await temp({
      watch: async (folder) => Promise.reject(Object.assign(new Error(folder), { code: 'EACCES', syscall: 'watch' })),
    });
    const [path = ''] = await one.trackFiles('a/1.txt');
    expect([one.tracker.state(one.source(path)), one.notices]).toEqual(['orphaned', []]);
  });
});

describe('the end of tracking', () => {
  test('reports nothing for an untracked file while its neighbours continue', async () => {
    const one = await temp();
    const [path = '', other = ''] = await one.trackFiles('a.txt', 'b.txt');
    await writeFile(path, 'settling while it is let go');
    one.tracker.untrack(one.source(path));
    expect(one.tracker.state(one.source(path))).toBeUndefined();
    await writeFile(path, 'unseen');
    await writeFile(other, 'seen');
    await one.until(() => one.told.length > 0);
    await one.tracker.sweep();
    expect(one.told).toEqual([{ path: other, content: 'seen' }]);
  });

  test('stops watching a folder without tracked files, and resumes when one comes back', async () => {
    const watched: string[] = [];
    const one = await temp({
      watch: async (folder, listener) => {
        const watch = await watchFolder(folder, listener);
        watched.push('open');
        return {
          kind: watch.kind,
          close: async () => {
            await watch.close();
            watched.push('close');
          },
        };
      },
    });
    const [path = ''] = await one.trackFiles('a.txt');
    one.tracker.untrack(one.source(path));
    await one.tracker.trackMany([{ source: one.source(path) }]);
    await writeFile(path, 'second');
    await one.until(() => one.told.length === 1);
    expect(watched.sort()).toEqual(['close', 'open', 'open']);
  });

  test('waits for running callbacks on close and ends everything; a second close is harmless', async () => {
    let began = (): void => undefined;
    const beginning = new Promise<void>((resolve) => {
      began = resolve;
    });
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const seen: string[] = [];
    const one = await temp({
      concurrency: 1,
      onChange: async ({ path }) => {
        began();
        await released;
        seen.push(path);
      },
    });
    const paths = await one.trackFiles('a.txt', 'b.txt', 'c.txt');
    await Promise.all(paths.map((path) => writeFile(path, 'second')));
    await beginning;
    const closing = one.tracker.close();
    let closed = false;
    void closing.then(() => {
      closed = true;
    });
    await one.tracker.sweep();
    expect(closed).toBe(false);
    release();
    await closing;
    await Promise.all([
      one.tracker.close(),
      writeFile(paths[0] ?? '', 'third'),
      one.tracker.trackMany([{ source: one.source(paths[0] ?? '') }]),
    ]);
    expect(seen).toHaveLength(1);
    expect(one.tracker.status()).toEqual({ attached: 0, orphaned: 0, folders: 0, sweptFolders: 0 });
  });
});
