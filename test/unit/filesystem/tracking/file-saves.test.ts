import { appendFile, mkdir, open, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { watchPlain } from '../../../../src/filesystem/tracking/watch-folder.js';
import { contentOf, trackedTemps } from './tracker-folder.js';

const temp = trackedTemps();
/** Long settle times: on a busy machine a writer's pause may last long and is still a pause. */
const BUSY_MACHINE = { restMs: 250, absentMs: 10_000, longestSettleMs: 120_000 } as const;
const SLOW_WRITER = { restMs: 2_000, longestSettleMs: 120_000 } as const;

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

/**
 * The file is briefly empty. On a busy machine this pause of 20 ms lasts long enough for the file
 * to settle while empty.
 */
const SLOW: Readonly<Record<string, typeof SLOW_WRITER>> = { 'truncate, then write': SLOW_WRITER };

describe.each(['chokidar', 'plain'] as const)('saves, watched by %s (decision C11)', (kind) => {
  const settings = kind === 'chokidar' ? {} : { watch: watchPlain };

  /**
   * Every way of saving uses its own files and tracker. All run at once, because each mostly waits.
   */
  let runs: Readonly<Record<string, ReturnType<typeof savedThrice>>>;

  async function savedThrice(save: Save, rests: Partial<typeof SLOW_WRITER>) {
    const one = await temp({ ...BUSY_MACHINE, ...rests, ...settings });
    const [path = '', other = ''] = await one.trackFiles('a.txt', 'b.txt');
    for (const content of ['second', 'third', 'fourth']) {
      await save(path, content);
      await one.until(() => one.contents(path).includes(content));
    }
    return { saved: one.contents(path), untouched: one.contents(other) };
  }

  beforeAll(async () => {
    runs = Object.fromEntries(Object.entries(SAVES).map(([name, save]) => [name, savedThrice(save, SLOW[name] ?? {})]));
    await Promise.allSettled(Object.values(runs));
  });

  test.each(Object.keys(SAVES))('report %s as one change, never as a deletion, repeatedly', async (name) => {
    expect(await runs[name]).toEqual({ saved: ['second', 'third', 'fourth'], untouched: [] });
  });

  test('report a deletion, and the file again when it is re-created (decision C4)', async () => {
    const one = await temp(settings);
    const [path = ''] = await one.trackFiles('a.txt');
    await unlink(path);
    await one.until(() => one.told.length === 1);
    await writeFile(path, 'again');
    await one.until(() => one.told.length === 2);
    expect(one.contents(path)).toEqual([undefined, 'again']);
  });

  test('report one change per file for a folder removed and re-created at once', async () => {
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

  test('orphan the files of a folder that stays away, and attach them again by themselves [§5.9]', async () => {
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
  test('reports a slowly written file once and whole', async () => {
    const one = await temp(SLOW_WRITER);
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

  test('reports a log that never rests at the limit, and its last line at the end', async () => {
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

  test('condenses 100 rapid writes into few changes and sees the last content', async () => {
    const one = await temp(SLOW_WRITER);
    const [path = ''] = await one.trackFiles('a.txt');
    for (let write = 0; write < 100; write += 1) await writeFile(path, `write ${write}`);
    await one.until(() => one.told.at(-1)?.content === 'write 99');
    expect(one.told.length).toBeLessThanOrEqual(3);
  });

  test('reports a change during a callback afterwards, never two callbacks at once', async () => {
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

  test('reports a change between settling and reading once the file settles again', async () => {
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

  test('takes a file as it is after the limit if it changes before each read', async () => {
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

  test('reports an unchanged source again on demand, but not an untracked one', async () => {
    const one = await temp();
    const [path = ''] = await one.trackFiles('a.txt');
    one.tracker.reportAgain(one.source(`${path}.other`));
    one.tracker.reportAgain(one.source(path));
    await one.until(() => one.told.length > 0);
    expect(one.contents(path)).toEqual(['first a.txt']);
    expect(one.told).toHaveLength(1);
  });

  test('limits the number of concurrent callbacks', async () => {
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
