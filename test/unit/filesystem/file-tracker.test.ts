import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, chmod, link, mkdir, open, rename, rm, symlink, unlink, utimes, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { watchFolder } from '../../../src/filesystem/watch-folder.js';
import { unprivileged } from './temp-folder.js';
import { contentOf, type TrackedTemp, trackedTemp } from './tracker-folder.js';

const opened: TrackedTemp[] = [];
async function temp(options: Parameters<typeof trackedTemp>[0] = {}): Promise<TrackedTemp> {
  const made = await trackedTemp(options);
  opened.push(made);
  return made;
}
afterEach(async () => {
  await Promise.all(opened.splice(0).map((one) => one.close()));
});

type Save = (path: string, content: string) => Promise<void>;

/** Ways in which editors and tools save a file. */
const SAVES: Readonly<Record<string, Save>> = {
  'write in place': (path, content) => writeFile(path, content),
  'truncate, then write': async (path, content) => {
    const handle = await open(path, 'r+');
    await handle.truncate(0);
    await pause(20);
    await handle.write(content, 0);
    await handle.close();
  },
  'temporary file and rename': async (path, content) => {
    await writeFile(`${path}.tmp`, content);
    await rename(`${path}.tmp`, path);
  },
  'backup by rename, then a new file': async (path, content) => {
    await rename(path, `${path}~`);
    await pause(10);
    await writeFile(path, content);
    await unlink(`${path}~`);
  },
  'remove and write in one go': async (path, content) => {
    await unlink(path);
    await writeFile(path, content);
  },
  ...Object.fromEntries(
    [5, 20, 300].map((ms): [string, Save] => [
      `remove and write after ${ms} ms`,
      async (path, content) => {
        await unlink(path);
        await pause(ms);
        await writeFile(path, content);
      },
    ]),
  ),
};

describe.each(['chokidar', 'plain'] as const)('saves, watched by %s (decision C11)', (kind) => {
  const settings = kind === 'chokidar' ? {} : { chokidarFiles: 0 };

  test.each(Object.entries(SAVES))('%s is one change, never a deletion, again and again', async (_name, save) => {
    const one = await temp(settings);
    const [path = '', other = ''] = await one.trackFiles('a.txt', 'b.txt');
    for (const content of ['second', 'third', 'fourth']) {
      await save(path, content);
      await one.until(() => one.contents(path).includes(content));
    }
    expect(one.contents(path)).toEqual(['second', 'third', 'fourth']);
    expect(one.contents(other)).toEqual([]);
  });

  test('a deletion is told, and so is the file made again later (decision C4)', async () => {
    const one = await temp(settings);
    const [path = ''] = await one.trackFiles('a.txt');
    await unlink(path);
    await one.until(() => one.told.length === 1);
    await writeFile(path, 'again');
    await one.until(() => one.told.length === 2);
    expect(one.contents(path)).toEqual([undefined, 'again']);
  });

  test('a folder removed and made again at once is one change per file', async () => {
    const one = await temp(settings);
    const paths = await one.trackFiles('f/a.txt', 'f/b.txt');
    await rm(dirname(paths[0] ?? ''), { recursive: true });
    await mkdir(dirname(paths[0] ?? ''));
    for (const path of paths) await writeFile(path, 'of another branch');
    await one.until(() => one.told.length === 2);
    expect(paths.flatMap(one.contents)).toEqual(['of another branch', 'of another branch']);
    await one.tracker.sweep();
    expect(one.tracker.status()).toEqual({ attached: 2, orphaned: 0, folders: 1, sweptFolders: 0 });
    await writeFile(paths[0] ?? '', 'later');
    await one.until(() => one.told.length === 3);
  });

  test('a folder that stays away orphans its files and attaches them again by itself [§5.9]', async () => {
    const one = await temp(settings);
    const [path = ''] = await one.trackFiles('deep/er/a.txt');
    await rm(join(one.folder.inside, 'deep'), { recursive: true });
    await one.until(() => one.told.length === 1 && one.states.length === 1);
    expect(one.tracker.state(one.source(path))).toBe('orphaned');
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, 'back');
    await one.until(() => one.told.length === 2 && one.states.length === 2);
    expect(one.states).toEqual([`${path} orphaned`, `${path} attached`]);
    expect(one.contents(path)).toEqual([undefined, 'back']);
    await writeFile(path, 'watched again');
    await one.until(() => one.contents(path).includes('watched again'));
  });
});

describe('settling on disk', () => {
  test('a file that is written slowly is told once, whole', async () => {
    const one = await temp();
    const [path = ''] = await one.trackFiles('a.txt');
    await writeFile(path, '');
    for (let chunk = 0; chunk < 5; chunk += 1) {
      await appendFile(path, `chunk ${chunk}\n`);
      await pause(40);
    }
    await appendFile(path, 'end');
    await one.until(() => one.contents(path).some((content) => content?.endsWith('end')));
    expect(one.told).toHaveLength(1);
  });

  test('a log that never rests is told at the limit, and its last line in the end', async () => {
    const one = await temp({ longestSettleMs: 300 });
    const [path = ''] = await one.trackFiles('app.log');
    let ended = false;
    const writing = (async () => {
      for (let line = 0; !ended; line += 1) {
        await appendFile(path, `${line}\n`);
        await pause(10);
      }
      await appendFile(path, 'last');
    })();
    await one.until(() => one.told.length >= 2);
    ended = true;
    await writing;
    await one.until(() => one.told.at(-1)?.content?.endsWith('last') === true);
  });

  test('100 rapid writes are few changes and the last content is seen', async () => {
    const one = await temp();
    const [path = ''] = await one.trackFiles('a.txt');
    for (let write = 0; write < 100; write += 1) await writeFile(path, `write ${write}`);
    await one.until(() => one.told.at(-1)?.content === 'write 99');
    expect(one.told.length).toBeLessThanOrEqual(3);
  });

  test('what changes while a source is being told is told afterwards, never twice at once', async () => {
    let running = 0;
    let most = 0;
    const begun: (() => void)[] = [];
    const seen: string[] = [];
    const release: (() => void)[] = [];
    const one = await temp({
      onChange: async ({ path }) => {
        running += 1;
        most = Math.max(most, running);
        seen.push(path);
        for (const tell of begun.splice(0)) tell();
        await new Promise<void>((resolve) => {
          release.push(resolve);
        });
        running -= 1;
      },
    });
    const nextBegin = (): Promise<void> => new Promise((resolve) => begun.push(resolve));
    const [path = '', other = ''] = await one.trackFiles('a.txt', 'b.txt');
    const first = nextBegin();
    await writeFile(path, 'second');
    await first;
    await writeFile(path, 'third');
    await writeFile(path, 'fourth');
    const beside = nextBegin();
    await writeFile(other, 'another');
    await beside;
    expect([seen, most]).toEqual([[path, other], 2]);
    const again = nextBegin();
    for (const resolve of release.splice(0)) resolve();
    await again;
    expect([seen, running]).toEqual([[path, other, path], 1]);
    for (const resolve of release.splice(0)) resolve();
  });

  test('what changes between coming to rest and being read is told again once it rests', async () => {
    const still: boolean[] = [];
    let read: readonly (string | undefined)[] = [];
    const one = await temp({
      onChange: async ({ path }, isStill) => {
        if (read.length === 0) await writeFile(path, 'half');
        const content = await contentOf(path);
        if (read.length === 0) await writeFile(path, 'whole again');
        read = [...read, content];
        still.push(await isStill());
        if (still.at(-1)) done();
      },
    });
    let done: () => void = () => undefined;
    const told = new Promise<void>((resolve) => {
      done = resolve;
    });
    const [path = ''] = await one.trackFiles('a.txt');
    await writeFile(path, 'second');
    await told;
    expect(still).toEqual([false, true]);
    expect(read).toEqual(['half', 'whole again']);
  });

  test('a file that changes every time between coming to rest and being read is taken as it is after the limit', async () => {
    const still: boolean[] = [];
    let done: () => void = () => undefined;
    const told = new Promise<void>((resolve) => {
      done = resolve;
    });
    const one = await temp({
      restMs: 10,
      longestSettleMs: 150,
      onChange: async ({ path }, isStill) => {
        if (still.at(-1)) return;
        await appendFile(path, '.');
        still.push(await isStill());
        if (still.at(-1)) done();
      },
    });
    const [path = ''] = await one.trackFiles('a.txt');
    await writeFile(path, 'second');
    await told;
    expect(still.length).toBeGreaterThan(1);
    expect(still.slice(0, -1)).not.toContain(true);
  });

  test('a source is told again on demand, although nothing changed; one that is not tracked is not', async () => {
    const one = await temp();
    const [path = ''] = await one.trackFiles('a.txt');
    one.tracker.tellAgain(one.source(`${path}.other`));
    one.tracker.tellAgain(one.source(path));
    await one.until(() => one.told.length > 0);
    expect(one.contents(path)).toEqual(['first a.txt']);
    expect(one.told).toHaveLength(1);
  });

  test('not more sources are told at once than allowed', async () => {
    let running = 0;
    let most = 0;
    let done = 0;
    const one = await temp({
      concurrency: 3,
      onChange: async () => {
        running += 1;
        most = Math.max(most, running);
        await pause(5);
        running -= 1;
        done += 1;
        finished();
      },
    });
    let finished = (): void => undefined;
    const all = new Promise<void>((resolve) => {
      finished = () => {
        if (done === 20) resolve();
      };
    });
    const paths = await one.trackFiles(...Array.from({ length: 20 }, (_, index) => `${index}.txt`));
    await Promise.all(paths.map((path) => writeFile(path, 'x')));
    await all;
    expect(most).toBe(3);
  });
});

describe('what counts as a change', () => {
  test('a file that differs from what was read of it is told at once, one that does not is not', async () => {
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

  test('a file that is not there yet is told when it comes', async () => {
    const one = await temp();
    const path = join(one.folder.inside, 'later.txt');
    await one.tracker.track(one.source(path));
    expect(one.tracker.state(one.source(path))).toBe('attached');
    await writeFile(path, 'now');
    await one.until(() => one.told.length === 1);
    expect(one.contents(path)).toEqual(['now']);
  });

  test('a change through another hard link is found by the sweep', async () => {
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

  test('the sweep goes by itself', async () => {
    const one = await temp({ sweepMs: 100 });
    const [path = ''] = await one.trackFiles('a.txt');
    const elsewhere = join(one.folder.outside, 'b.txt');
    await link(path, elsewhere);
    await writeFile(elsewhere, 'quietly');
    await one.until(() => one.told.at(-1)?.content === 'quietly');
  });

  test('a telling that fails is reported and comes again with the sweep', async () => {
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
    expect(one.notices[0]).toMatch(/a\.txt" changed but could not be taken up; .*: database away$/);
    failing = false;
    await one.tracker.sweep();
    await success;
    expect(seen).toEqual([path, path]);
  });
});

describe('many files', () => {
  test('of 1,000 tracked files all 200 that change are told, and only they', async () => {
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

  test('what changes while the event loop stands still for 2 s is told, whatever the system lost', async () => {
    const one = await temp();
    const names = Array.from({ length: 500 }, (_, index) => `${index}.txt`);
    const paths = await one.trackFiles(...names);
    // 20,000 other files overflow the queue of the kernel before the tracked ones change.
    const script = `const fs = require('node:fs'); const dir = process.argv[1];
      for (let i = 0; i < 20000; i += 1) fs.writeFileSync(dir + '/noise' + (i % 50), 'x');
      for (let i = 0; i < 500; i += 1) fs.writeFileSync(dir + '/' + i + '.txt', 'changed');`;
    const child = spawn(process.execPath, ['-e', script, one.folder.inside], { stdio: 'ignore' });
    const exited = once(child, 'exit');
    const until = performance.now() + 2000;
    while (performance.now() < until);
    expect(await exited).toEqual([0, null]);
    const changed = (): Set<string> => new Set(one.told.filter(({ content }) => content === 'changed').map(({ path }) => path));
    await one.until(() => changed().size === 500);
    expect(changed()).toEqual(new Set(paths));
  }, 120_000);
});

describe('where nothing can be watched', () => {
  test('container-internal and outside files stay orphaned [§5.8]', async () => {
    const one = await temp();
    const foreign = { ...one.source('/etc/hosts'), filesystemId: 'container' as never };
    const outside = one.source(await one.folder.put('outside/a.txt', 'x'));
    await one.tracker.trackMany([{ source: foreign }, { source: outside }]);
    expect([one.tracker.state(foreign), one.tracker.state(outside)]).toEqual(['orphaned', 'orphaned']);
    expect(one.tracker.status()).toEqual({ attached: 0, orphaned: 2, folders: 0, sweptFolders: 0 });
    one.tracker.untrackMany([foreign, outside]);
    expect(one.tracker.state(foreign)).toBeUndefined();
  });

  test('a mount that went away orphans its files and tells no deletion (decision C5)', async () => {
    const one = await temp({ mounts: ({ inside }) => [{ agentPrefix: '/workspace', canonicalPrefix: join(inside, 'mnt') }] });
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

  test('a folder without permission orphans its files until it is given back', async () => {
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

  test('a parent that is a link by now is not followed', async () => {
    const one = await temp();
    const [path = ''] = await one.trackFiles('f/a.txt');
    const away = join(one.folder.outside, 'f');
    await rename(dirname(path), away);
    await symlink(away, dirname(path));
    await one.tracker.sweep();
    expect(one.tracker.state(one.source(path))).toBe('orphaned');
  });

  test('a change made through a linked folder is told by the canonical path', async () => {
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

  test('where no watches are left the sweep stands in, with one notice, until there are some again', async () => {
    let left = false;
    const one = await temp({
      sweepMs: 60_000,
      watch: async (folder, wanted, listener) => {
        if (!left) throw noSpace(folder);
        return watchFolder(folder, wanted, listener);
      },
    });
    const [path = ''] = await one.trackFiles('a/1.txt', 'b/2.txt');
    expect(one.notices).toHaveLength(1);
    expect(one.notices[0]).toMatch(/^no more folders can be watched \(ENOSPC\).* every 60 s instead/);
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

  test('the first of many are watched as the many will be', async () => {
    const kinds: string[] = [];
    const one = await temp({
      chokidarFiles: 10,
      watch: async (folder, wanted, listener) => {
        kinds.push(wanted);
        return watchFolder(folder, wanted, listener);
      },
    });
    const paths = await Promise.all(['a/1.txt', 'b/2.txt', 'c/3.txt'].map((name) => one.folder.put(`root/${name}`, name)));
    const [a, b, c] = paths.map((path) => ({ source: one.source(path) }));
    if (a === undefined || b === undefined || c === undefined) throw new Error('three files were made');
    await one.tracker.trackMany([a], 10);
    await one.tracker.trackMany([b], 11);
    await one.tracker.track(c.source);
    expect(kinds).toEqual(['chokidar', 'plain', 'plain']);
  });

  test('any other failure to watch orphans', async () => {
    const one = await temp({
      watch: async (folder) => Promise.reject(Object.assign(new Error(folder), { code: 'EACCES', syscall: 'watch' })),
    });
    const [path = ''] = await one.trackFiles('a/1.txt');
    expect([one.tracker.state(one.source(path)), one.notices]).toEqual(['orphaned', []]);
  });
});

describe('the end of tracking', () => {
  test('nothing is told of a file that is tracked no more, its neighbours go on', async () => {
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

  test('a folder without tracked files is watched no more, and again when one comes back', async () => {
    const watched: string[] = [];
    const one = await temp({
      watch: async (folder, wanted, listener) => {
        const watch = await watchFolder(folder, wanted, listener);
        watched.push('open');
        return {
          close: async () => {
            await watch.close();
            watched.push('close');
          },
        };
      },
    });
    const [path = ''] = await one.trackFiles('a.txt');
    one.tracker.untrackMany([one.source(path)]);
    await one.tracker.track(one.source(path));
    await writeFile(path, 'second');
    await one.until(() => one.told.length === 1);
    expect(watched.sort()).toEqual(['close', 'open', 'open']);
  });

  test('closing waits for what is being told and ends everything; twice is once', async () => {
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
    await Promise.all([one.tracker.close(), writeFile(paths[0] ?? '', 'third'), one.tracker.track(one.source(paths[0] ?? ''))]);
    expect(seen).toHaveLength(1);
    expect(one.tracker.status()).toEqual({ attached: 0, orphaned: 0, folders: 0, sweptFolders: 0 });
  });
});
