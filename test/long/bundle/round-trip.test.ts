import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { exportBundle } from '../../../src/bundle/export-bundle.js';
import { importBundle } from '../../../src/bundle/import-bundle.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import { listSessions } from '../../../src/client/session/open-session.js';
import { localFilesystemId } from '../../../src/filesystem/access/filesystem-id.js';
import { MountTable } from '../../../src/filesystem/access/mounts.js';
import { AllowedRoots } from '../../../src/filesystem/access/roots.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { planRestore } from '../../../src/restore/restore-plan.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { importId } from '../../../src/store/import-parts.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { openClient, wholeRead } from '../../support/context.js';
import { cliPath, temporaryRoot } from '../../support/mcp-clients.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';
import { until } from '../../support/until.js';

describe('a session that moves between databases', () => {
  const name = `bun${randomUUID().slice(0, 8)}`;
  let made: ReviewedSessions;
  let node: OwnNode;
  let there: ObjectStore;
  let xtdb: XtdbClient;
  let files: Awaited<ReturnType<typeof temporaryRoot>>;

  beforeAll(async () => {
    [made, node, files] = await Promise.all([reviewedSessions(name), ownNode(), temporaryRoot()]);
    xtdb = new XtdbClient(node.address);
    there = new ObjectStore(xtdb);
  });
  afterAll(async () => {
    await there.close();
    await xtdb.close();
    await Promise.all([made.close(), node.stop(), files.remove()]);
  });

  const write = async (store: ObjectStore, session: string, file: string, upto?: number) => {
    const path = join(files.root, file);
    const written = await exportBundle(await Timeline.open(store), { session: session as SessionId, file: path, upto });
    return { path, written, bytes: await readFile(path) };
  };
  const take = (path: string) => importBundle(there, path, { clientDir: node.dataDir });
  const whole = async (store: ObjectStore, session: string) => {
    const { ok, contexts, answers, parts } = await verifySession(store, session);
    expect({ ok, unequal: contexts.unequal, answers: answers.unequal, damages: parts.damages }).toEqual({
      ok: true,
      unequal: [],
      answers: [],
      damages: [],
    });
    return contexts.equal;
  };

  test('verifies there, reads the same, and gives the same bytes again', async () => {
    const first = await write(made.client.store, `${name}-first`, 'first.bundle');
    expect((await write(made.client.store, `${name}-first`, 'again.bundle')).bytes.equals(first.bytes)).toBe(true);
    const moved = join(files.root, 'moved');
    await mkdir(moved);
    const folders = [{ from: made.root, to: moved }];
    expect(await importBundle(there, first.path, { clientDir: node.dataDir, folders })).toMatchObject({
      session: `${name}-first`,
      isNew: true,
    });
    await writeFile(join(moved, 'a.ts'), 'one\nshared\n');
    const local = await localFilesystemId(node.dataDir);
    const access = { roots: await AllowedRoots.open([moved]), mounts: new MountTable({ defaultFilesystemId: local }) };
    const when = { moment: { kind: 'turn', turn: 2 } } as const;
    const plan = await planRestore(await Timeline.open(there), `${name}-first` as SessionId, { when, access });
    expect(plan.files.map(({ source, state }) => [source.path, state])).toEqual([
      [join(moved, 'a.ts'), 'changed'],
      [join(moved, 'b.ts'), 'never-read'],
    ]);
    expect(await whole(there, `${name}-first`)).toBe(1);
    expect((await write(there, `${name}-first`, 'back.bundle')).bytes.equals(first.bytes)).toBe(true);
    expect(await take(first.path)).toMatchObject({ isNew: false });
    const listed = await listSessions(await there.latest(), []);
    expect(listed.map(({ id }) => id)).toEqual([`${name}-first`]);
  });

  test('is imported from only one bundle if two machines import different ones at once', async () => {
    const session = `${name}-second`;
    const bundles = [
      await write(made.client.store, session, 'long.bundle'),
      await write(made.client.store, session, 'short.bundle', 1),
    ];
    // Each machine has its own locks.
    const dirs = await Promise.all(
      bundles.map((_, i) => temporaryRoot().then(({ root, remove }) => ({ root: join(root, String(i)), remove }))),
    );
    const ended = await Promise.allSettled(
      bundles.map(({ path }, i) => importBundle(there, path, { clientDir: dirs[i]?.root ?? '' })),
    );
    await Promise.all(dirs.map(({ remove }) => remove()));
    const refusals = ended.flatMap((one) => (one.status === 'rejected' ? [String(one.reason)] : []));
    expect([refusals.length, refusals.join()]).toEqual([
      1,
      expect.stringMatching(/conflict|guard of this write failed|another bundle|already/),
    ]);
    await whole(there, session);
    const winner = ended.findIndex(({ status }) => status === 'fulfilled');
    expect((await write(there, session, 'winner.bundle')).bytes.equals(bundles[winner]?.bytes ?? Buffer.alloc(0))).toBe(
      true,
    );
  });

  test('brings the steps that it shares with its ancestors, with long texts and messages', async () => {
    const { client, root } = made;
    const parent = await client.openSession({ id: `${name}-parent` });
    const long = 'a line of a long text\n'.repeat(60_000);
    await parent.setSystemPrompt('First.');
    await parent.reportMessage({ role: 'user', text: `Read it. ${long.slice(0, 5_000)}` });
    await writeFile(join(root, 'long.txt'), long);
    const read = async (session: typeof parent, content: string) => {
      const readings = [await wholeRead(client, 'long.txt')];
      const { applied } = await session.recordCall({
        tool: 'read',
        args: { path: 'long.txt' },
        status: 'ok',
        content,
        answer: () => content,
        readings,
      });
      await applied;
    };
    await read(parent, long);
    await parent.assemble({ deliver: 'library' });
    await parent.reportMessage({ role: 'assistant', text: 'Done.' });
    const shared = parent.state.seq;
    await parent.reportMessage({ role: 'user', text: 'Nobody else is to know this.' });
    await parent.setSystemPrompt('Second.');
    const fork = await client.forkSession(parent.id, { at: shared, id: `${name}-fork` });
    await writeFile(join(root, 'long.txt'), `changed ${long}`);
    await fork.reportMessage({ role: 'user', text: long.slice(0, 5_000) });
    await read(fork, `changed ${long}`);
    await fork.assemble({ deliver: 'library' });
    await Promise.all([client.closeSession(parent), client.closeSession(fork)]);
    await client.delivered();

    const bundle = await write(client.store, `${name}-fork`, 'fork.bundle');
    expect(bundle.written.manifest.objects.session).toBeGreaterThan(2);
    expect(await take(bundle.path)).toMatchObject({ sessions: [`${name}-parent`, `${name}-fork`], isNew: true });
    expect(await whole(there, `${name}-fork`)).toBe(2);
    expect(await whole(there, `${name}-parent`)).toBe(1);
    expect((await (await there.latest()).steps(parent.id)).length).toBe(shared);
    expect((await (await there.latest()).get(`system_prompt:${name}-parent`))?.version.content).toBe('First.');
    expect((await write(there, `${name}-fork`, 'fork-back.bundle')).bytes.equals(bundle.bytes)).toBe(true);
    // The parent has more steps here. Its shorter copy there does not accept them.
    const whole1 = await write(client.store, `${name}-parent`, 'parent.bundle');
    await expect(take(whole1.path)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(`${name}-parent`),
    });
    const early = await write(client.store, `${name}-fork`, 'early.bundle', shared + 1);
    await expect(write(client.store, `${name}-fork`, 'earlier.bundle', shared - 1)).rejects.toMatchObject({
      code: 'not-yet',
    });
    expect(early.written).toMatchObject({ step: shared + 1 });
  });

  test('continues there, and moves on to a third database with its new part', async () => {
    const client = await ContextClient.create({
      address: node.address,
      roots: [made.root],
      cwd: made.root,
      filesystemId: made.client.files.access.mounts.localFilesystemId,
    });
    const third = await ownNode();
    const thirdXtdb = new XtdbClient(third.address);
    const thirdStore = new ObjectStore(thirdXtdb);
    try {
      const session = await client.openSession({ id: `${name}-first` });
      expect(session.state.turn).toBe(3);
      await session.reportMessage({ role: 'user', text: 'Go on here' });
      const { text } = await session.assemble({ deliver: 'library' });
      expect(text).toContain('Look at a.ts');
      await client.closeSession(session);
      await client.delivered();
      expect(await whole(there, `${name}-first`)).toBe(2);
      const grown = await write(there, `${name}-first`, 'grown.bundle');
      expect(await importBundle(thirdStore, grown.path, { clientDir: third.dataDir })).toMatchObject({ isNew: true });
      expect(await whole(thirdStore, `${name}-first`)).toBe(2);
      expect((await write(thirdStore, `${name}-first`, 'grown-back.bundle')).bytes.equals(grown.bytes)).toBe(true);
      await expect(importBundle(made.client.store, grown.path, { clientDir: node.dataDir })).rejects.toMatchObject({
        code: 'conflict',
      });
      expect(await take(join(files.root, 'first.bundle'))).toMatchObject({ isNew: false });
    } finally {
      await client.close();
      await thirdStore.close();
      await thirdXtdb.close();
      await third.stop();
    }
  });

  test('may arrive in any order with sessions that read the same file, and every context stays as it was', async () => {
    const { client, root } = made;
    const file = join(root, 'common.ts');
    const hour = Math.floor(Date.now() / 1_000) - 3_600;
    const session = async (id: string, content: string, second: number) => {
      await writeFile(file, content);
      await utimes(file, hour + second, hour + second);
      const open = await client.openSession({ id: `${name}-${id}` });
      await open.reportMessage({ role: 'user', text: 'Read it' });
      const readings = [await wholeRead(client, 'common.ts')];
      const { applied } = await open.recordCall({
        tool: 'read',
        args: {},
        status: 'ok',
        content,
        answer: () => content,
        readings,
      });
      await applied;
      await open.assemble({ deliver: 'library' });
      await client.closeSession(open);
      await client.delivered();
      return write(client.store, open.id, `${id}.bundle`);
    };
    const one = await session('one', 'one', 0);
    // The version was valid before the first context was handed out, but was learned only
    // afterwards.
    const two = await session('two', 'two', 10);
    const other = await ownNode();
    const otherXtdb = new XtdbClient(other.address);
    const otherStore = new ObjectStore(otherXtdb);
    try {
      await importBundle(otherStore, two.path, { clientDir: other.dataDir });
      await importBundle(otherStore, one.path, { clientDir: other.dataDir });
      expect([await whole(otherStore, `${name}-one`), await whole(otherStore, `${name}-two`)]).toEqual([1, 1]);
      expect((await write(otherStore, `${name}-one`, 'one-first.bundle')).bytes.equals(one.bytes)).toBe(true);
    } finally {
      await otherStore.close();
      await otherXtdb.close();
      await other.stop();
    }
    expect([await take(one.path), await take(two.path)]).toMatchObject([{ isNew: true }, { isNew: true }]);
    expect([await whole(there, `${name}-one`), await whole(there, `${name}-two`)]).toEqual([1, 1]);
    for (const [id, { bytes }] of Object.entries({ one, two }))
      expect((await write(there, `${name}-${id}`, `${id}-back.bundle`)).bytes.equals(bytes)).toBe(true);
  });

  test('is absent after a kill during its import; a second import completes it', async () => {
    const { client } = made;
    const session = await client.openSession({ id: `${name}-killed` });
    await session.reportMessage({ role: 'user', text: 'Work' });
    for (let i = 0; i < 120; i++) {
      const { applied } = await session.recordCall({
        tool: 'bash',
        args: { i },
        status: 'ok',
        content: `out ${i}`,
        answer: (id) => `out ${id}`,
      });
      await applied;
      if (i % 40 === 0) await session.assemble({ deliver: 'library' });
    }
    await client.closeSession(session);
    await client.delivered();
    const bundle = await write(client.store, session.id, 'killed.bundle');
    let kills = 0;
    for (const count of [1, 30, 90]) {
      const child = spawn(process.execPath, [cliPath, 'import', bundle.path, '--data', node.dataDir, '--json'], {
        stdio: 'ignore',
      });
      const ended = once(child, 'exit');
      await until(
        async () => (await (await there.latest()).documents.newest([importId(session.id, count)])).size,
        (found) => found > 0,
      );
      child.kill('SIGKILL');
      await ended;
      const isWhole = (await (await there.latest()).documents.importOf(session.id))?.isWhole;
      if (isWhole === true) continue;
      kills += 1;
      expect((await listSessions(await there.latest(), [])).map(({ id }) => id)).not.toContain(session.id);
      await expect(verifySession(there, session.id)).rejects.toMatchObject({ code: 'unknown-session' });
      const other = await openClient(made.root, { address: node.address });
      await expect(other.openSession({ id: session.id })).rejects.toMatchObject({ code: 'session-exists' });
      await expect(other.forkSession(session.id)).rejects.toMatchObject({ code: 'unknown-session' });
      await other.close();
      await expect(take(join(files.root, 'first.bundle'))).resolves.toMatchObject({ isNew: false });
    }
    expect(kills).toBeGreaterThan(0);
    expect(await take(bundle.path)).toMatchObject({ isNew: true });
    expect(await whole(there, session.id)).toBe(3);
    expect((await write(there, session.id, 'killed-back.bundle')).bytes.equals(bundle.bytes)).toBe(true);
  });

  test('continues an interrupted import from a later bundle, but not from one with another beginning', async () => {
    const { client, root } = made;
    const session = await client.openSession({ id: `${name}-cut` });
    const turn = async (text: string): Promise<void> => {
      await session.reportMessage({ role: 'user', text });
      // The text is so large that it needs more than one transaction.
      await writeFile(join(root, 'cut.txt'), `${text} ${randomUUID()}\n`.repeat(120_000));
      const readings = [await wholeRead(client, 'cut.txt')];
      const { applied } = await session.recordCall({
        tool: 'read',
        args: { text },
        status: 'ok',
        content: text,
        answer: () => text,
        readings,
      });
      await applied;
      await session.assemble({ deliver: 'library' });
      await client.delivered();
    };
    await turn('First');
    const short = await write(client.store, session.id, 'cut-short.bundle');
    await turn('Second');
    await client.closeSession(session);
    await client.delivered();
    const long = await write(client.store, session.id, 'cut-long.bundle');
    const cutAt = (path: string, stop: number) =>
      importBundle(there, path, {
        clientDir: node.dataDir,
        onProgress: (done) => {
          if (done === stop) throw new Error('cut short here');
        },
      });
    const { transactions } = short.written.manifest;
    await expect(cutAt(short.path, transactions - 1)).rejects.toThrow('cut short here');
    expect((await listSessions(await there.latest(), [])).map(({ id }) => id)).not.toContain(session.id);
    await expect(cutAt(long.path, transactions + 1)).rejects.toThrow('cut short here');
    await expect(take(short.path)).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining('does not begin with'),
    });
    expect(await take(long.path)).toMatchObject({ isNew: true });
    expect(await whole(there, session.id)).toBe(2);
    expect((await write(there, session.id, 'cut-back.bundle')).bytes.equals(long.bytes)).toBe(true);
  });
});
