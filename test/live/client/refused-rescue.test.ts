import { cp, mkdir, mkdtemp, readdir, realpath, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import { leftSessions } from '../../../src/client/recovery/left-sessions.js';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { findingsOf } from '../../../src/maintenance/findings.js';
import { inspectDataFolder } from '../../../src/maintenance/inspect-data-folder.js';
import { filesystemId, sessionId } from '../../../src/objects/ids.js';
import { describeFailure } from '../../../src/tools/describe-failure.js';
import { testAddress } from '../../support/context.js';
import { canMount, mountSmall, unmount } from '../../support/disk-tricks.js';
import { GateProxy } from '../../support/gate-proxy.js';
import { moment } from '../../support/moment.js';
import { callReport as call } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

describe('acknowledged steps of a lost session whose fork fails', () => {
  let root: string;
  let proxy: GateProxy;
  /** Writes straight to the node. */
  let elsewhere: ContextClient;
  const clients: ContextClient[] = [];
  const notices: string[] = [];
  const filesystem = filesystemId(`fs-refused-${process.pid}-${Date.now()}`);
  let folders = 0;
  const newFolder = (): string => join(root, `data-${folders++}`);

  const open = async (options: Partial<ContextClientOptions>): Promise<ContextClient> => {
    const settings = { address: proxy.address, roots: [root], cwd: root, filesystemId: filesystem, track: false };
    const client = await ContextClient.create({ ...settings, onNotice: (line) => void notices.push(line), ...options });
    clients.push(client);
    return client;
  };

  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-refused-')));
    proxy = await new GateProxy(root).open();
    elsewhere = await ContextClient.create({
      address: testAddress(),
      roots: [root],
      cwd: root,
      filesystemId: filesystem,
      track: false,
    });
  });
  afterEach(async () => {
    proxy.onSubmit = () => 'pass';
    notices.length = 0;
    await Promise.all(clients.splice(0).map((client) => client.close()));
  });
  afterAll(async () => {
    await elsewhere.close();
    await proxy.close();
    await rm(root, { recursive: true, force: true });
  });

  /**
   * Opens a session of three steps, only the first of them stored, in a client that learns of its
   * loss on release.
   */
  async function overtaken(dataDir = newFolder()) {
    const client = await open({ dataDir });
    const session = await client.openSession();
    await (await session.recordCall(call({ content: 'one' }))).applied;
    const [released, release] = moment();
    proxy.submits = 0;
    proxy.onSubmit = (_body, nth) => (nth === 0 ? released : 'pass');
    const applied: Promise<unknown>[] = [];
    for (const content of ['two', 'three']) {
      const recorded = await session.recordCall(call({ content }));
      recorded.applied.catch(() => undefined);
      applied.push(recorded.applied);
    }
    await elsewhere.openSession({ id: session.id });
    return { client, session, applied, release, dataDir };
  }

  const stepsOf = async (id: string) => {
    const snapshot = await elsewhere.store.latest();
    const steps = await snapshot.steps(sessionId(id));
    const calls = steps.flatMap(({ call }) => (call === undefined ? [] : [call.id]));
    const versions = await snapshot.getMany(calls);
    return calls.map((id) => versions.get(id)?.version.content);
  };
  const forksOf = async (id: string): Promise<readonly string[]> =>
    (await (await elsewhere.store.latest()).sessions())
      .filter(({ parent }) => parent?.session === id)
      .map((one) => one.id);
  const found = async (dataDir: string) =>
    findingsOf(await inspectDataFolder(dataDir), Date.now()).map(({ code, detail }) => ({ code, detail }));
  /** Blocks all writes to a fork of the session. */
  const intoFork = (session: ContextSession) => (body: string) =>
    body.includes(`${session.id}.fork-`) ? 'spoil' : 'pass';

  test('go into a fork of another name if a foreign session has its name', async () => {
    const { client, session, applied, release, dataDir } = await overtaken();
    const name = `${session.id}.fork-1-2`;
    const taken = await elsewhere.openSession({ id: name });
    await (await taken.recordCall(call({ content: 'somebody else' }))).applied;
    const copy = newFolder();
    await cp(join(dataDir, 'journal'), join(copy, 'journal'), { recursive: true });
    for (const file of await readdir(join(copy, 'journal')))
      if (file.endsWith('.lock')) await truncate(join(copy, 'journal', file));
    expect(await leftSessions(elsewhere.store, copy)).toMatchObject([
      { fate: 'forks', fork: { id: `${name}-2`, first: 2 } },
    ]);
    release();
    for (const one of applied)
      await expect(one).rejects.toMatchObject({ code: 'taken-over', message: expect.stringContaining(`${name}-2`) });
    expect([await stepsOf(`${name}-2`), await stepsOf(name), await forksOf(session.id)]).toEqual([
      ['one', 'two', 'three'],
      ['somebody else'],
      [`${name}-2`],
    ]);
    expect(await client.close()).toEqual({ unflushed: 0 });
    // Later clients find it by that name.
    const next = await open({ address: testAddress(), dataDir: copy });
    await next.delivered();
    expect(await next.close()).toEqual({ unflushed: 0 });
    expect(await forksOf(session.id)).toEqual([`${name}-2`]);
  });

  test('do not go into a fork of that name that a user made, wherever it begins', async () => {
    const { session, applied, release } = await overtaken();
    const theirs = await elsewhere.forkSession(session.id, { id: `${session.id}.fork-1-9`, at: 0 });
    release();
    for (const one of applied)
      await expect(one).rejects.toMatchObject({ message: expect.stringContaining(`${session.id}.fork-1-2`) });
    expect([await stepsOf(`${session.id}.fork-1-2`), await stepsOf(theirs.id)]).toEqual([['one', 'two', 'three'], []]);
  });

  test('stay in the journal after a final refusal; call and doctor report it, opening retries', async () => {
    const { client, session, applied, release, dataDir } = await overtaken();
    const gate = proxy.onSubmit;
    proxy.onSubmit = (body, nth) => (nth === 0 ? gate(body, nth) : intoFork(session)(body));
    release();
    const refusal = {
      code: 'not-kept',
      message: expect.stringMatching(
        new RegExp(
          `^step 2 of session ${session.id} was acknowledged and is not in the database: .*palimpsest doctor.*` +
            'If nodes share a log, palimpsest journal adopt',
        ),
      ),
    };
    for (const one of applied) await expect(one).rejects.toMatchObject(refusal);
    const told = await session.recordCall(call({ content: 'four' })).catch((error: unknown) => error);
    expect(told).toMatchObject(refusal);
    // The text for the model.
    const { signal } = new AbortController();
    expect(await describeFailure(told, { client, session, signal })).toEqual({
      message: expect.stringMatching(/^step 2 of session .* palimpsest doctor/),
      next: expect.stringContaining('call again to continue'),
    });
    expect(notices).toEqual([expect.stringContaining(`step 2 of session ${session.id}`)]);
    const named = {
      code: 'delivery-refused',
      detail: expect.stringContaining(`session ${session.id}: 2 records, steps 2 to 3;`),
    };
    await until(
      () => found(dataDir),
      (codes) =>
        codes.some(({ code, detail }) => code === 'delivery-refused' && detail?.includes('2 records') === true),
    );
    expect(await found(dataDir)).toEqual([named]);

    // The loss is reported; the session continues without the missing steps.
    const again = await client.openSession({ id: session.id });
    expect(await stepsOf(session.id)).toEqual(['one']);
    await (await again.recordCall(call({ content: 'another two' }))).applied;
    expect(await found(dataDir)).toEqual([named]);
    await client.closeSession(again);

    proxy.onSubmit = () => 'pass';
    await client.openSession({ id: session.id });
    const fork = `${session.id}.fork-1-2`;
    expect([await stepsOf(fork), await stepsOf(session.id)]).toEqual([
      ['one', 'two', 'three'],
      ['one', 'another two'],
    ]);
    expect(await client.close()).toEqual({ unflushed: 0 });
    expect(await found(dataDir)).toEqual([]);
  });

  test('are reported once on reopening if no call has reported them', async () => {
    const { client, session, applied, release } = await overtaken();
    const gate = proxy.onSubmit;
    proxy.onSubmit = (body, nth) => (nth === 0 ? gate(body, nth) : intoFork(session)(body));
    release();
    await Promise.allSettled(applied);
    await expect(client.openSession({ id: session.id })).rejects.toMatchObject({ code: 'not-kept' });
    expect((await client.openSession({ id: session.id })).state.seq).toBe(1);
    expect(await client.close()).toEqual({ unflushed: 2 });
  });

  test('are retried by the next process, which leaves them to its successor', async () => {
    const { client, session, applied, release, dataDir } = await overtaken();
    const gate = proxy.onSubmit;
    // The fork and its first step arrive.
    proxy.onSubmit = (body, nth) => (nth === 0 ? gate(body, nth) : body.includes('three') ? 'spoil' : 'pass');
    release();
    await expect(applied[1]).rejects.toMatchObject({
      code: 'not-kept',
      message: expect.stringContaining(`${session.id}.fork-1-2`),
    });
    expect(await client.close()).toEqual({ unflushed: 1 });
    const named = [{ code: 'delivery-refused', detail: expect.stringContaining('1 records, steps 3 to 3;') }];
    expect(await found(dataDir)).toEqual(named);

    proxy.onSubmit = (body) => (body.includes('three') ? 'spoil' : 'pass');
    const next = await open({ dataDir });
    await next.delivered();
    expect(notices).toEqual(
      Array.from({ length: 2 }, () => expect.stringContaining(`step 3 of session ${session.id}`)),
    );
    // Refused records of another process do not affect a session that is opened here.
    await next.openSession({ id: session.id });
    expect(await next.close()).toEqual({ unflushed: 1 });
    expect(await found(dataDir)).toEqual(named);

    proxy.onSubmit = () => 'pass';
    const last = await open({ dataDir });
    await last.delivered();
    expect(await last.close()).toEqual({ unflushed: 0 });
    expect([
      await stepsOf(`${session.id}.fork-1-2`),
      await found(dataDir),
      await readdir(join(dataDir, 'journal')),
    ]).toEqual([['one', 'two', 'three'], [], []]);
  });

  (canMount() ? test : test.skip)('arrives although the disk of the data folder is full', async () => {
    const dataDir = newFolder();
    await mkdir(dataDir);
    mountSmall(dataDir, '1m');
    try {
      const { client, session, applied, release } = await overtaken(dataDir);
      await writeFile(join(dataDir, 'filler'), Buffer.alloc(1_000_000)).catch(() => undefined);
      release();
      for (const one of applied)
        await expect(one).rejects.toMatchObject({ message: expect.stringContaining('.fork-1-2') });
      expect(await client.close()).toEqual({ unflushed: 0 });
      expect(await stepsOf(`${session.id}.fork-1-2`)).toEqual(['one', 'two', 'three']);
    } finally {
      await Promise.all(clients.splice(0).map((client) => client.close()));
      unmount(dataDir);
    }
  });
});
