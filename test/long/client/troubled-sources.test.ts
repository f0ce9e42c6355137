import { appendFile, chmod, mkdir, open as openFile, rename, stat, unlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { filesystemId, type ObjectId } from '../../../src/objects/ids.js';
import { wholeRead } from '../../support/context.js';
import { canMount, mountSmall, unmount } from '../../support/disk-tricks.js';
import { callReport, contentsOf, TrackedProject, versionsOf } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';
import { unprivileged } from '../../unit/filesystem/temp-folder.js';

const mounting = canMount() ? test : test.skip;
/** A path is read once it has rested this long, far longer than the writers below pause. */
const SLOW_WRITERS = { restMs: 600, longestSettleMs: 60_000 };

describe('tracked sources in trouble', () => {
  let project: TrackedProject;
  let client: ContextClient;
  let session: ContextSession;
  const file = (name: string) => project.file(name);

  beforeEach(async () => {
    project = await TrackedProject.create();
  });

  afterEach(() => project.close());

  async function reading(
    options: Parameters<TrackedProject['open']>[0],
    ...paths: readonly string[]
  ): Promise<readonly ObjectId[]> {
    client = await project.open(options);
    session = await client.openSession();
    return project.read(client, session, ...paths);
  }

  const tracking = (state: { readonly attached: number; readonly orphaned: number }) =>
    until(
      () => client.tracking,
      (now) => now?.attached === state.attached && now.orphaned === state.orphaned,
    );

  test('are deleted at old paths of a renamed folder, new at new ones, and return under old ids [C4, C5]', async () => {
    await mkdir(file('src'));
    for (const name of ['a', 'b']) await writeFile(file(`src/${name}.ts`), `${name} one`);
    const ids = await reading({}, 'src/a.ts', 'src/b.ts');
    const { sets } = session.state;
    await rename(file('src'), file('lib'));
    for (const [i, name] of ['a', 'b'].entries())
      expect(await versionsOf(client, ids[i], 2)).toEqual([`${name} one`, null]);
    expect(session.state.sets).toEqual(sets);
    expect((await session.assemble()).text).toMatch(/src\/a\.ts.*\[deleted\]/);
    await tracking({ attached: 0, orphaned: 2 });
    const [moved] = await project.read(client, session, 'lib/a.ts');
    expect(ids).not.toContain(moved);
    expect(await contentsOf(client, moved)).toEqual(['a one']);
    await rename(file('lib'), file('src'));
    expect(await versionsOf(client, ids[1], 3)).toEqual(['b one', null, 'b one']);
    expect(await versionsOf(client, moved, 2)).toEqual(['a one', null]);
    await tracking({ attached: 2, orphaned: 1 });
    await writeFile(file('src/b.ts'), 'b two');
    expect(await versionsOf(client, ids[1], 4)).toEqual(['b one', null, 'b one', 'b two']);
  });

  mounting(
    'a mount that is removed orphans its files without deleting them; mounted again, its new files are read (C5)',
    async () => {
      const mount = file('mnt');
      await mkdir(mount);
      mountSmall(mount, '512k');
      try {
        const { dev: device } = await stat(mount);
        await writeFile(join(mount, 'a.ts'), 'one');
        const mounts = [
          { agentPrefix: '/workspace', canonicalPrefix: mount, filesystemId: filesystemId('fs-of-the-mount') },
        ];
        const [id] = await reading({ mounts, track: { sweepMs: 200 } }, '/workspace/a.ts');
        await tracking({ attached: 1, orphaned: 0 });
        unmount(mount);
        await tracking({ attached: 0, orphaned: 1 });
        await expect(wholeRead(client, '/workspace/a.ts')).rejects.toThrow();
        await project.settled(client, session);
        expect(await contentsOf(client, id)).toEqual(['one']);
        expect((await session.assemble()).text).toContain('\none');
        mountSmall(mount, '512k');
        await writeFile(join(mount, 'a.ts'), 'two');
        // The same device is the same mount. Another device may be any disk: this client keeps its
        // versions, and the next one reads the files.
        if ((await stat(mount)).dev === device) {
          expect(await versionsOf(client, id, 2)).toEqual(['one', 'two']);
          await tracking({ attached: 2, orphaned: 0 });
        } else {
          await project.settled(client, session);
          expect(await contentsOf(client, id)).toEqual(['one']);
        }
        await client.close();
        client = await project.open({ mounts });
        await client.openSession({ id: session.id });
        expect(await contentsOf(client, id)).toEqual(['one', 'two']);
      } finally {
        unmount(mount);
      }
    },
  );

  test('are orphaned with the reason if unreadable, keep their version, and are tracked again [C5]', async () => {
    await chmod(project.folder, 0o755);
    await writeFile(file('a.ts'), 'one');
    await writeFile(file('b.ts'), 'b one');
    const [id] = await reading({}, 'a.ts', 'b.ts');
    await unprivileged(async () => {
      // Only the owner can remove the permission. Without superuser rights it then applies to the
      // reader, too.
      process.seteuid?.(process.getuid?.() ?? 0);
      await chmod(file('a.ts'), 0o000);
      if (process.getuid?.() === 0) process.seteuid?.(65_534);
      await until(
        () => client.tracking?.unreadable,
        (unreadable) => unreadable?.length === 1,
      );
    });
    expect(client.tracking).toMatchObject({ attached: 1, orphaned: 1, unreadable: [{ id, reason: 'no-permission' }] });
    expect(await contentsOf(client, id)).toEqual(['one']);
    expect((await session.assemble()).text).toContain('\none');
    await writeFile(file('b.ts'), 'b two');
    await chmod(file('a.ts'), 0o644);
    await tracking({ attached: 2, orphaned: 0 });
    await writeFile(file('a.ts'), 'two');
    expect(await versionsOf(client, id, 2)).toEqual(['one', 'two']);
  });

  test('are recorded whole once a growing file rests, and never before', async () => {
    await writeFile(file('log.txt'), 'line 0\n');
    const [id] = await reading({ track: SLOW_WRITERS }, 'log.txt');
    for (let line = 1; line <= 60; line++) {
      await appendFile(file('log.txt'), `line ${line}\n`);
      await pause(10);
    }
    const whole = Array.from({ length: 61 }, (_, line) => `line ${line}\n`).join('');
    expect(await versionsOf(client, id, 2)).toEqual(['line 0\n', whole]);
  });

  test('give only whole beginnings of a file that never rests, and all of it in the end', async () => {
    await writeFile(file('log.txt'), '');
    const [id] = await reading({ track: { restMs: 20, longestSettleMs: 100 } }, 'log.txt');
    const line = `${'x'.repeat(999)}\n`;
    const lines = 400;
    const handle = await openFile(file('log.txt'), 'a');
    let writing = true;
    const writer = (async () => {
      for (let i = 0; i < lines; i++) {
        await handle.write(line);
        if (i % 10 === 0) await pause(5);
      }
      await handle.close();
      writing = false;
    })();
    while (writing) await session.recordCall(callReport({ readings: [await wholeRead(client, 'log.txt')] }));
    await writer;
    const whole = line.repeat(lines);
    const all = await until(
      () => contentsOf(client, id),
      (versions) => versions.at(-1) === whole,
    );
    expect(all.length).toBeGreaterThan(2);
    for (const content of all) expect(whole.startsWith(content ?? 'nothing')).toBe(true);
    expect(all.map((content) => content?.length ?? -1)).toEqual(
      [...all.map((content) => content?.length ?? -1)].sort((a, b) => a - b),
    );
  });

  test.each([
    ['a backup by rename, then a new file', 10],
    ['a removal, then a new file', 120],
  ])('have one version and no deletion for %s (decision C11)', async (what, gapMs) => {
    await writeFile(file('a.ts'), 'one');
    const [id] = await reading({ track: { absentMs: 3_000 } }, 'a.ts');
    for (const content of ['two', 'three']) {
      await (what.startsWith('a backup') ? rename(file('a.ts'), file('a.ts~')) : unlink(file('a.ts')));
      await pause(gapMs);
      await writeFile(file('a.ts'), content);
      await until(
        async () => (await contentsOf(client, id)).at(-1),
        (last) => last === content,
      );
    }
    await project.settled(client, session);
    expect(await contentsOf(client, id)).toEqual(['one', 'two', 'three']);
  });

  test('have few versions after a thousand saves, the last one correct', async () => {
    await writeFile(file('a.ts'), 'save 0');
    const [id] = await reading({}, 'a.ts');
    for (let save = 1; save <= 1_000; save++) await writeFile(file('a.ts'), `save ${save}`);
    const all = await until(
      () => contentsOf(client, id),
      (versions) => versions.at(-1) === 'save 1000',
    );
    expect(all.length).toBeLessThan(30);
    // Caught between truncation and writing, a save that never rested is empty.
    for (const content of all) expect(content).toMatch(/^(save \d+)?$/);
  });

  test('keep the last version of a file deleted without a session until one resumes [§3.6, §5.6]', async () => {
    await writeFile(file('a.ts'), 'one');
    const [id] = await reading({}, 'a.ts');
    await client.close();
    await unlink(file('a.ts'));
    const other = await project.open();
    const stranger = await other.openSession();
    const { source } = await other.files.locate('a.ts', { mustExist: false });
    const gone = { source, reading: await other.files.read(source), activate: true };
    expect(gone.reading).toEqual({ kind: 'missing' });
    const { outcomes } = await (await stranger.recordCall(callReport({ status: 'fail', readings: [gone] }))).applied;
    expect(outcomes.size).toBe(0);
    await project.settled(other, stranger);
    expect(await contentsOf(other, id)).toEqual(['one']);
    await other.openSession({ id: session.id });
    expect(await contentsOf(other, id)).toEqual(['one', null]);
  });
});
