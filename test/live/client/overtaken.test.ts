import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { testAddress, wholeRead } from '../../support/context.js';
import { GateProxy } from '../../support/gate-proxy.js';
import { moment } from '../../support/moment.js';
import { callReport as call } from '../../support/tracked-project.js';

describe('sessions and files of two writing clients', () => {
  let root: string;
  let proxy: GateProxy;
  /** Writes straight to the node. */
  let elsewhere: ContextClient;
  const clients: ContextClient[] = [];
  const filesystem = filesystemId(`fs-overtaken-${Date.now()}`);

  const open = async (options: Partial<ContextClientOptions> = {}): Promise<ContextClient> => {
    const settings = { address: proxy.address, roots: [root], cwd: root, filesystemId: filesystem, track: false };
    const client = await ContextClient.create({ ...settings, ...options });
    clients.push(client);
    return client;
  };
  let folders = 0;
  const dataDir = (): string => join(root, `data-${folders++}`);

  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-overtaken-')));
    proxy = await new GateProxy(root).open();
    elsewhere = await another();
  });
  afterEach(async () => {
    proxy.onSubmit = () => 'pass';
    proxy.onQuery = () => undefined;
    await Promise.all(clients.splice(0).map((client) => client.close()));
  });
  afterAll(async () => {
    await elsewhere.close();
    await proxy.close();
    await rm(root, { recursive: true, force: true });
  });

  const another = (): Promise<ContextClient> =>
    ContextClient.create({ address: testAddress(), roots: [root], cwd: root, filesystemId: filesystem, track: false });

  /** Acknowledges calls without waiting for the database; other tests check refusals. */
  async function acknowledge(
    session: ContextSession,
    ...contents: readonly string[]
  ): Promise<readonly Promise<unknown>[]> {
    const applied: Promise<unknown>[] = [];
    for (const content of contents) {
      const recorded = await session.recordCall(call({ content }));
      recorded.applied.catch(() => undefined);
      applied.push(recorded.applied);
    }
    return applied;
  }

  /**
   * Opens a session with one stored step, in a client whose next submission waits until the session
   * was taken over.
   */
  async function overtaken(
    contents: readonly string[],
    then: GateProxy['onSubmit'],
    onReleased: () => void = () => undefined,
  ) {
    const folder = dataDir();
    const first = await open({ dataDir: folder });
    const session = await first.openSession();
    await (await session.recordCall(call({ content: 'one' }))).applied;
    const [released, release] = moment();
    proxy.submits = 0;
    proxy.onSubmit = (body, nth) => (nth === 0 ? released.then(onReleased) : then(body, nth));
    const applied = await acknowledge(session, ...contents);
    await elsewhere.openSession({ id: session.id });
    release();
    return { folder, first, session, applied };
  }

  /** As a new client finds them. */
  const forksOf = async (id: string): Promise<readonly { readonly id: string; readonly steps: number }[]> => {
    const reader = await another();
    const found = await reader.listSessions();
    await reader.close();
    return found.filter(({ parent }) => parent?.session === id).map(({ id, steps }) => ({ id, steps }));
  };
  const textOf = async (id: string): Promise<string> => (await (await elsewhere.openSession({ id })).assemble()).text;

  /** Returns a session's current context, which equals the one at its basis. */
  async function asRecorded(client: ContextClient, session: ContextSession): Promise<string> {
    const { text, record } = await session.assemble();
    const { validTime, txId } = record.basis ?? {};
    if (validTime === undefined || txId === undefined) throw new Error('the context was made without the database');
    expect(text).toBe((await client.contextAsOf(session.id, { validTime, txId }))?.text);
    return text;
  }

  test('complete a partly written fork in the next process', async () => {
    const [caught, onCaught] = moment();
    // Only the fork and its first step pass.
    const { folder, first, session, applied } = await overtaken(['two', 'three', 'four'], (_body, nth) => {
      if (nth <= 2) return 'pass';
      onCaught();
      return 'refuse';
    });
    await caught;
    await first.store.close();
    expect(await first.close()).toEqual({ unflushed: 2 });
    await expect(applied[0]).rejects.toMatchObject({ code: 'taken-over', message: expect.stringContaining('.fork-') });
    const next = await open({ address: testAddress(), dataDir: folder });
    await next.delivered();
    expect(await next.close()).toEqual({ unflushed: 0 });
    expect(await forksOf(session.id)).toEqual([{ id: `${session.id}.fork-1-2`, steps: 4 }]);
    const { state } = await elsewhere.openSession({ id: `${session.id}.fork-1-2` });
    expect(state.sets.index.map((id) => id.endsWith('.fork-1-2'))).toEqual([false, true, true, true]);
  });

  test('put later steps into a fork of a fork that was opened meanwhile', async () => {
    const [caught, onCaught] = moment();
    const [released, release] = moment();
    const { first, session, applied } = await overtaken(['two', 'three', 'four'], (_body, nth) => {
      if (nth !== 3) return 'pass';
      onCaught();
      return released;
    });
    await caught;
    const fork = `${session.id}.fork-1-2`;
    const opened = await elsewhere.openSession({ id: fork });
    await (await opened.recordCall(call({ content: 'by whoever opened the fork' }))).applied;
    release();
    await expect(applied[2]).rejects.toMatchObject({ message: expect.stringContaining(`${fork}.fork-1-3`) });
    await expect(first.close()).resolves.toEqual({ unflushed: 0 });
    expect([opened.state.seq, await forksOf(session.id), await forksOf(fork)]).toEqual([
      3,
      [{ id: fork, steps: 3 }],
      [{ id: `${fork}.fork-1-3`, steps: 4 }],
    ]);
    expect(await textOf(`${fork}.fork-1-3`)).not.toContain('by whoever');
  });

  test('create a fork after an outage that began during its creation', async () => {
    let refused = 0;
    const { first, session, applied } = await overtaken(['two', 'three'], (body) => {
      if (!body.includes('.fork-') || refused === 2) return 'pass';
      refused += 1;
      return 'refuse';
    });
    for (const one of applied)
      await expect(one).rejects.toMatchObject({ message: expect.stringContaining('.fork-1-2') });
    expect([refused, (await forksOf(session.id)).map(({ steps }) => steps), await first.close()]).toEqual([
      2,
      [3],
      { unflushed: 0 },
    ]);
  });

  test('have the prompt that was set between reading and taking over', async () => {
    const first = await open({ address: testAddress() });
    const session = await first.openSession();
    await session.setSystemPrompt('the first prompt');
    await first.delivered();
    proxy.submits = 0;
    proxy.onSubmit = async (_body, nth) => {
      if (nth > 0) return;
      // Passed on once the other client has set its prompt: the earlier read is stale.
      await session.setSystemPrompt('the second prompt');
      await first.delivered();
    };
    const { text } = await (await (await open()).openSession({ id: session.id })).assemble();
    expect(text).toContain('the second prompt');
  });

  test('end an outage with a refusal', async () => {
    const [caught, onCaught] = moment();
    const [released, release] = moment();
    // The first attempt gets no answer, the second is refused; the fork waits.
    const { first, applied } = await overtaken(
      ['two'],
      () => {
        onCaught();
        return released;
      },
      () => {
        throw new Error('the node is away');
      },
    );
    await caught;
    expect(first.status.outage).toBeUndefined();
    release();
    await expect(applied[0]).rejects.toMatchObject({ code: 'taken-over' });
  });

  test('have a step made during the takeover in the other client’s journal', async () => {
    const first = await open({ address: testAddress() });
    for (const folder of [dataDir(), undefined]) {
      const session = await first.openSession();
      await session.recordCall(call({ content: 'one' }));
      const [released, release] = moment();
      const [caught, onCaught] = moment();
      proxy.onSubmit = () => {
        onCaught();
        return released;
      };
      const second = await open(folder === undefined ? {} : { dataDir: folder });
      const opening = second.openSession({ id: session.id });
      await caught;
      await session.recordCall(call({ content: 'two, by the first' }));
      release();
      proxy.onSubmit = () => 'pass';
      const other = await opening;
      expect(other.state.seq).toBe(2);
      await (await other.recordCall(call({ content: 'three' }))).applied;
      expect((await other.assemble()).text).toContain('two, by the first');
      await expect(session.recordCall(call({ content: 'too late' }))).rejects.toMatchObject({ code: 'taken-over' });
    }
  });

  test('show a file from a fork in the contexts of the client’s other sessions', async () => {
    const first = await open({ dataDir: dataDir() });
    const [one, two] = [await first.openSession(), await first.openSession()];
    const path = join(root, 'f.ts');
    await writeFile(path, 'first text');
    for (const session of [one, two])
      await (await session.recordCall(call({ readings: [await wholeRead(first, 'f.ts')] }))).applied;
    const [released, release] = moment();
    const [later, releaseLater] = moment();
    const [caught, onCaught] = moment();
    proxy.submits = 0;
    proxy.onSubmit = (body, nth) => {
      if (nth === 0) return released;
      if (!body.includes('the second text')) return 'pass';
      onCaught();
      return later;
    };
    await acknowledge(one, 'plain');
    await writeFile(path, 'the second text, which is longer');
    const lost = await one.recordCall(call({ readings: [await wholeRead(first, 'f.ts')] }));
    await elsewhere.openSession({ id: one.id });
    release();
    await caught;
    await two.assemble();
    releaseLater();
    await expect(lost.applied).rejects.toMatchObject({ message: expect.stringContaining('.fork-') });
    expect(await asRecorded(first, two)).toContain('the second text');
  });

  test('do not put a write with a lost answer over a later write of another client', async () => {
    const first = await open({ dataDir: dataDir() });
    const [one, two] = [await first.openSession(), await first.openSession()];
    const path = join(root, 'g.ts');
    await writeFile(path, 'first text');
    for (const session of [one, two])
      await (await session.recordCall(call({ readings: [await wholeRead(first, 'g.ts')] }))).applied;
    const foreign = await elsewhere.openSession();
    const [released, release] = moment();
    const [caught, onCaught] = moment();
    let dropped = false;
    proxy.onSubmit = (body) => {
      if (dropped || !body.includes('the second text')) return 'pass';
      dropped = true;
      // Holds the query for its outcome.
      proxy.onQuery = () => {
        onCaught();
        proxy.onQuery = () => undefined;
        return released;
      };
      return 'drop';
    };
    await writeFile(path, 'the second text, which is longer');
    const read = await one.recordCall(call({ readings: [await wholeRead(first, 'g.ts')] }));
    await caught;
    await writeFile(path, 'a third text, which is the longest of them all');
    await (await foreign.recordCall(call({ readings: [await wholeRead(elsewhere, 'g.ts')] }))).applied;
    await (await two.recordCall(call({ content: 'plain' }))).applied;
    expect((await two.assemble()).record.basis).toBeDefined();
    release();
    expect(await read.applied).toMatchObject({ txId: undefined });
    expect(await asRecorded(first, two)).toContain('a third text');
  });
});
