import { randomUUID } from 'node:crypto';
import { watch } from 'node:fs';
import { mkdir, rename, unlink, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ClientJournal } from '../../../src/client/delivery/client-journal.js';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { writeSource } from '../../../src/filesystem/access/write-source.js';
import { canonicalPath, filesystemId, type ObjectId } from '../../../src/objects/ids.js';
import { mentions, wholeRead } from '../../support/context.js';
import { Road } from '../../support/road.js';
import { callReport, contentsOf, looksOf, TrackedProject, versionsOf } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

/** Settle time longer than any half-written file of a test. */
const SLOW_WRITER = { restMs: 2_000, longestSettleMs: 60_000 };

describe('tracked sources', () => {
  let project: TrackedProject;
  let folder: string;
  let root: string;
  const file = (name: string) => project.file(name);
  const open = (options: Partial<ContextClientOptions> = {}) => project.open(options);
  const read: TrackedProject['read'] = (client, session, ...paths) => project.read(client, session, ...paths);
  const settled: TrackedProject['settled'] = (client, session) => project.settled(client, session);

  beforeEach(async () => {
    project = await TrackedProject.create();
    ({ folder, root } = project);
  });

  afterEach(() => project.close());

  test('record an outside change as a new version without moving a set [§5.6, §5.8]', async () => {
    await writeFile(file('a.ts'), 'one');
    const client = await open();
    const session = await client.openSession();
    const [id] = await read(client, session, 'a.ts');
    const plan = await session.planVerb('deactivate', ['a.ts']);
    await session.recordCall(callReport({ tool: 'deactivate', plan }));
    const { sets } = session.state;
    await writeFile(file('a.ts'), 'twice as long');
    expect(await versionsOf(client, id, 2)).toEqual(['one', 'twice as long']);
    expect(session.state.sets).toEqual(sets);
    expect(session.state.isActive(id as ObjectId)).toBe(false);
    await until(
      () => session.metadata(id as ObjectId),
      (metadata) => metadata?.charCount === 13,
    );
    expect((await session.assemble()).text).toContain('char_count=13');
  });

  test('show a version dated ahead of our clock once its date has come, without any write then', async () => {
    await writeFile(file('a.ts'), 'one');
    const client = await open({ track: false });
    const session = await client.openSession();
    await read(client, session, 'a.ts');
    expect((await session.assemble()).text).toMatch(/\none\n/);
    const ahead = 60_000;
    const other = await open({ track: false, dataDir: join(folder, 'other'), clock: () => Date.now() + ahead });
    await writeFile(file('a.ts'), 'two of it');
    const from = new Date(Date.now() + 1_500);
    await utimes(file('a.ts'), from, from);
    await read(other, await other.openSession(), 'a.ts');
    // It knows the transaction before the version is valid.
    await session.assemble();
    await until(
      () => session.assemble(),
      ({ text }) => text.includes('\ntwo of it\n'),
    );
  });

  test('record a save by rename as one change; deletion empties the object, equal bytes fill it (C3, C4)', async () => {
    await writeFile(file('a.ts'), 'one');
    const client = await open();
    const [id] = await read(client, await client.openSession(), 'a.ts');
    await writeFile(file('a.ts.tmp'), 'two');
    await rename(file('a.ts.tmp'), file('a.ts'));
    expect(await versionsOf(client, id, 2)).toEqual(['one', 'two']);
    await unlink(file('a.ts'));
    expect(await versionsOf(client, id, 3)).toEqual(['one', 'two', null]);
    await writeFile(file('a.ts'), 'two');
    expect(await versionsOf(client, id, 4)).toEqual(['one', 'two', null, 'two']);
  });

  test('record one version of an agent’s own change that the tracker also sees (decision C12)', async () => {
    await writeFile(file('a.ts'), 'one');
    const client = await open();
    const session = await client.openSession();
    const [id] = await read(client, session, 'a.ts');
    const looked = looksOf(client);
    const path = canonicalPath(file('a.ts'));
    for (const content of ['two', 'three', 'four']) {
      // Writes like the agent's tools. A truncated and refilled file would have an additional
      // state.
      await writeSource(client.files.access.roots, path, { content });
      await session.recordCall(callReport({ tool: 'write', readings: [await wholeRead(client, 'a.ts')] }));
    }
    // The calls themselves make three reads.
    await looked(file('a.ts'), 4);
    await settled(client, session);
    expect(await contentsOf(client, id)).toEqual(['one', 'two', 'three', 'four']);
  });

  test('record no version of a file half written at the end of a step (decision C11)', async () => {
    await writeFile(file('a.ts'), 'one');
    const client = await open({ track: SLOW_WRITER });
    const session = await client.openSession();
    const [id] = await read(client, session, 'a.ts');
    await writeFile(file('a.ts'), 'two');
    const two = await wholeRead(client, 'a.ts');
    await writeFile(file('a.ts'), '');
    const { applied } = await session.recordCall(callReport({ readings: [two] }));
    await applied;
    await writeFile(file('a.ts'), 'three');
    expect(await versionsOf(client, id, 3)).toEqual(['one', 'two', 'three']);
  });

  test('record no version of a file written between settling and reading until it settles again (C11)', async () => {
    await writeFile(file('a.ts'), 'one');
    const client = await open();
    const [id] = await read(client, await client.openSession(), 'a.ts');
    const plain = client.files.read.bind(client.files);
    let first = true;
    client.files.read = async (source, signal) => {
      if (!first) return plain(source, signal);
      first = false;
      await writeFile(file('a.ts'), '');
      const reading = await plain(source, signal);
      await writeFile(file('a.ts'), 'three');
      return reading;
    };
    await writeFile(file('a.ts'), 'two');
    expect(await versionsOf(client, id, 2)).toEqual(['one', 'three']);
    expect(first).toBe(false);
  });

  test.each([
    ['is being recorded comes after what the call has read', undefined, ['one', 'two', 'three']],
    ['cannot be recorded is written when that is known', new Error('the disk takes nothing'), ['one', 'three']],
  ])('read a file while a call that has read it %s (decision F7)', async (_what, failure, versions) => {
    for (const name of ['a.ts', 'b.ts']) await writeFile(file(name), 'one');
    const client = await open();
    const session = await client.openSession();
    const [id, other] = await read(client, session, 'a.ts', 'b.ts');
    const { append } = ClientJournal.prototype;
    let letGo = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    ClientJournal.prototype.append = async function (write) {
      await held;
      if (failure !== undefined) throw failure;
      return append.call(this, write);
    };
    try {
      await writeFile(file('a.ts'), 'two');
      const two = await wholeRead(client, 'a.ts');
      const looked = looksOf(client);
      const recorded = session.recordCall(callReport({ readings: [two] }));
      await writeFile(file('a.ts'), 'three');
      await looked(file('a.ts'));
      // Rounds are serial: the first change is decided once a later one is stored.
      await writeFile(file('b.ts'), 'two');
      await versionsOf(client, other, 2);
      letGo();
      if (failure === undefined) await (await recorded).applied;
      else await expect(recorded).rejects.toBe(failure);
      await until(
        () => contentsOf(client, id),
        (all) => all.at(-1) === 'three',
      );
      expect(await contentsOf(client, id)).toEqual(versions);
    } finally {
      letGo();
      ClientJournal.prototype.append = append;
    }
  });

  test('make one object with one version per change for two clients on one file [§3.7, §5.8]', async () => {
    await writeFile(file('a.ts'), 'one');
    const [first, second] = [await open(), await open({ dataDir: join(folder, 'other-data') })];
    const [session, other] = [await first.openSession(), await second.openSession()];
    const [id] = await read(first, session, 'a.ts');
    expect(await read(second, other, 'a.ts')).toEqual([id]);
    const seen = [looksOf(first), looksOf(second)];
    await writeFile(file('a.ts'), 'two');
    await Promise.all(seen.map((looked) => looked(file('a.ts'))));
    await settled(first, session);
    await settled(second, other);
    expect(await contentsOf(first, id)).toEqual(['one', 'two']);
    expect(other.state.sets.index).toHaveLength(4);
  });

  test('are orphaned if their folder goes with its root, then attached with the current text [§5.9, C5]', async () => {
    const other = join(folder, 'other');
    await mkdir(other);
    await writeFile(join(other, 'b.ts'), 'one');
    const client = await open({ roots: [root, other] });
    const [id] = await read(client, await client.openSession(), join(other, 'b.ts'));
    expect(client.tracking).toMatchObject({ attached: 1, orphaned: 0 });
    await rename(other, `${other}-away`);
    await until(
      () => client.tracking?.orphaned,
      (orphaned) => orphaned === 1,
    );
    expect(await contentsOf(client, id)).toEqual(['one']);
    await writeFile(join(`${other}-away`, 'b.ts'), 'two');
    await rename(`${other}-away`, other);
    expect(await versionsOf(client, id, 2)).toEqual(['one', 'two']);
    // The version may arrive by an event before the folder is watched again.
    await until(
      () => client.tracking?.attached,
      (attached) => attached === 1,
    );
    expect(client.tracking).toMatchObject({ attached: 1, orphaned: 0, unreadable: [] });
  });

  test('are tracked while a session that read them is open, stubs never (decision C11)', async () => {
    await Promise.all(['a.ts', 'b.ts', 'stub.ts'].map((name) => writeFile(file(name), name)));
    const client = await open();
    const [one, two] = [await client.openSession(), await client.openSession()];
    await read(client, one, 'a.ts', 'b.ts');
    await two.recordCall(callReport({ readings: [await wholeRead(client, 'a.ts')] }));
    await one.recordCall(callReport({ tool: 'ls', mentions: await mentions(client, ['stub.ts']) }));
    expect(client.tracking?.attached).toBe(2);
    await client.closeSession(one);
    expect(client.tracking?.attached).toBe(1);
    await client.closeSession(two);
    expect(client.tracking).toMatchObject({ attached: 0, orphaned: 0 });
  });

  test('are released with the session that read them last', async () => {
    await writeFile(file('a.ts'), 'one');
    const client = await open();
    const session = await client.openSession();
    const reading = await wholeRead(client, 'a.ts');
    await session.recordCall(callReport({ readings: [reading] }));
    // Its file is not tracked before a read.
    await client.closeSession(session);
    expect(client.tracking).toMatchObject({ attached: 0, orphaned: 0 });
  });

  test('correct a step that recorded an older state than the tracker', async () => {
    await writeFile(file('a.ts'), 'one');
    const client = await open();
    const session = await client.openSession();
    const [id] = await read(client, session, 'a.ts');
    const old = await wholeRead(client, 'a.ts');
    await writeFile(file('a.ts'), 'twice');
    await versionsOf(client, id, 2);
    await session.recordCall(callReport({ readings: [old] }));
    expect(await versionsOf(client, id, 4)).toEqual(['one', 'twice', 'one', 'twice']);
  });

  describe('a session that is resumed [§3.6]', () => {
    async function paused(...paths: readonly string[]) {
      const client = await open({ track: false });
      const session = await client.openSession();
      const ids = await read(client, session, ...paths);
      await session.recordCall(callReport({ tool: 'ls', mentions: await mentions(client, ['stub.ts']) }));
      await client.close();
      return { id: session.id, ids, before: session.state.sets };
    }

    beforeEach(async () => {
      await Promise.all(
        ['same.ts', 'changed.ts', 'deleted.ts', 'stub.ts'].map((name) => writeFile(file(name), `${name} one`)),
      );
    });

    test('records changes and deletions during its absence, moves no set, reads no stub, and tracks on', async () => {
      const { id, ids, before } = await paused('same.ts', 'changed.ts', 'deleted.ts');
      await writeFile(file('changed.ts'), 'changed.ts two');
      await unlink(file('deleted.ts'));
      const client = await open();
      const progress: (readonly [number, number])[] = [];
      const session = await client.openSession({ id, onProgress: (done, total) => progress.push([done, total]) });
      expect(progress).toEqual([
        [1, 3],
        [2, 3],
        [3, 3],
      ]);
      expect(await Promise.all(ids.map((one) => contentsOf(client, one)))).toEqual([
        ['same.ts one'],
        ['changed.ts one', 'changed.ts two'],
        ['deleted.ts one', null],
      ]);
      const { text } = await session.assemble();
      expect(text).toContain('changed.ts two');
      expect(text).toMatch(/deleted\.ts.*\[deleted\]/);
      expect(text).toMatch(/stub\.ts.*\[unread\]/);
      expect(session.state.sets).toEqual(before);
      expect(client.tracking).toMatchObject({ attached: 3, orphaned: 0, resuming: 0 });
      await writeFile(file('same.ts'), 'same.ts three');
      expect(await versionsOf(client, ids[0], 2)).toEqual(['same.ts one', 'same.ts three']);
    });

    test('orphans files on a machine with another filesystem, and keeps their last versions (F8)', async () => {
      const { id, ids } = await paused('same.ts', 'changed.ts');
      await writeFile(file('changed.ts'), 'changed.ts two');
      await unlink(file('same.ts'));
      const client = await open({ filesystemId: filesystemId(`fs-${randomUUID()}`) });
      const session = await client.openSession({ id });
      expect(client.tracking).toMatchObject({ attached: 0, orphaned: 2 });
      expect(client.tracking?.unreadable.map(({ reason }) => reason)).toEqual([
        'foreign-filesystem',
        'foreign-filesystem',
      ]);
      expect(await Promise.all(ids.map((one) => contentsOf(client, one)))).toEqual([
        ['same.ts one'],
        ['changed.ts one'],
      ]);
      expect((await session.assemble()).text).toContain('changed.ts one');
    });

    test('opens after a second with any number of sources; the rest follows and undoes nothing newer', async () => {
      const { id, ids } = await paused('same.ts', 'changed.ts');
      await writeFile(file('changed.ts'), 'changed.ts two');
      const client = await open();
      const plain = client.files.read.bind(client.files);
      let release: () => void = () => undefined;
      const gate = new Promise<void>((resolve) => {
        release = resolve;
      });
      let first = true;
      client.files.read = async (source, signal) => {
        const reading = await plain(source, signal);
        const held = first;
        first = false;
        if (held) await gate;
        return reading;
      };
      const session = await client.openSession({ id });
      expect(client.tracking?.resuming).toBe(1);
      expect((await session.assemble()).text).toContain('changed.ts one');
      await writeFile(file('changed.ts'), 'changed.ts newest');
      await versionsOf(client, ids[1], 2);
      release();
      await until(
        () => client.tracking?.resuming,
        (resuming) => resuming === 0,
      );
      await settled(client, session);
      expect(await contentsOf(client, ids[1])).toEqual(['changed.ts one', 'changed.ts newest']);
      expect((await session.assemble()).text).toContain('changed.ts newest');
    });

    test('leaves nothing running if it is closed at once', async () => {
      const { id } = await paused('same.ts', 'changed.ts');
      await writeFile(file('changed.ts'), 'changed.ts two');
      const client = await open();
      client.files.read = (_source, signal) =>
        new Promise((_resolve, reject) =>
          signal?.addEventListener('abort', () => reject(signal.reason), { once: true }),
        );
      await client.closeSession(await client.openSession({ id }));
      await until(
        () => client.tracking,
        (tracking) => tracking?.resuming === 0 && tracking.attached === 0,
      );
    });

    test('is not scanned by a client that tracks nothing', async () => {
      const { id, ids } = await paused('changed.ts');
      await writeFile(file('changed.ts'), 'changed.ts two');
      const client = await open({ track: false });
      await client.openSession({ id });
      expect(client.tracking).toBeUndefined();
      expect(await contentsOf(client, ids[0])).toEqual(['changed.ts one']);
    });
  });

  describe('while the database is away', () => {
    let road: Road;
    let client: ContextClient;
    let session: ContextSession;
    let id: ObjectId | undefined;

    beforeEach(async () => {
      road = new Road(folder);
      await road.open();
      client = await open({ address: road.address });
      session = await client.openSession();
      await writeFile(file('a.ts'), 'one');
      [id] = await read(client, session, 'a.ts');
      const looked = looksOf(client);
      await road.close();
      await writeFile(file('a.ts'), 'two');
      await looked(file('a.ts'));
      await until(
        () => client.status.waiting,
        (waiting) => waiting > 0,
      );
    });

    afterEach(() => road.close());

    test('keep a change waiting, in order with the session’s changes of the file', async () => {
      expect((await session.assemble()).text).toContain('two');
      await writeFile(file('a.ts'), 'three');
      const { applied } = await session.recordCall(callReport({ readings: [await wholeRead(client, 'a.ts')] }));
      await road.open();
      await applied;
      await settled(client, session);
      expect(await contentsOf(client, id)).toEqual(['one', 'two', 'three']);
    });

    test('let the next client find a change that did not arrive before closing', async () => {
      await client.close();
      const next = await open();
      expect(await contentsOf(next, id)).toEqual(['one']);
      await next.openSession({ id: session.id });
      expect(await contentsOf(next, id)).toEqual(['one', 'two']);
    });
  });

  test('tracking keeps no process alive, and ends on close', async () => {
    const watches = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'FSEventWrap' || name === 'StatWatcher').length;
    const control = watch(root);
    expect(watches()).toBe(1);
    control.close();
    await writeFile(file('a.ts'), 'one');
    const client = await open();
    await read(client, await client.openSession(), 'a.ts');
    expect(client.tracking?.attached).toBe(1);
    expect(watches()).toBe(0);
    await client.close();
    expect(client.tracking).toMatchObject({ attached: 0, orphaned: 0, resuming: 0 });
  });
});
