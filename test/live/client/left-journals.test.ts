import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readWrite } from '../../../src/client/delivery/damaged-journal.js';
import { encodeWrite } from '../../../src/client/delivery/write-record.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { readSettings } from '../../../src/host/settings.js';
import { adoptableJournals, openJournal, waitingRecords } from '../../../src/journal/journals.js';
import { encodePayload } from '../../../src/journal/payload.js';
import { adoptJournals, planAdoption, undelivered } from '../../../src/maintenance/adopt-journals.js';
import { filesystemId, type SessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { testAddress } from '../../support/context.js';
import { Road } from '../../support/road.js';
import { callReport } from '../../support/tracked-project.js';

describe('journals of a dead host', () => {
  let root: string;
  let road: Road;
  const filesystem = filesystemId(`fs-${randomUUID()}`);
  const clients: ContextClient[] = [];
  const notices: string[] = [];
  const options = { what: 'test', stuckMs: 60_000, onNotice: (line: string): void => void notices.push(line) };
  const node = testAddress();

  const open = async (
    dataDir: string,
    address: ConstructorParameters<typeof Road>[1] = node,
  ): Promise<ContextClient> => {
    const client = await ContextClient.create({
      address,
      roots: [root],
      cwd: root,
      filesystemId: filesystem,
      dataDir,
      track: false,
    });
    clients.push(client);
    return client;
  };

  /** The settings of the delivering host. */
  const here = () => {
    if (node.kind !== 'unix') throw new Error('the node of the tests listens on no socket');
    return readSettings({ XTDB_URL: `unix:${node.socketPath}`, HOME: root }, { data: join(root, 'here') });
  };

  /** Copies a data folder in its current state, as left by a host that dies now. */
  const copyOf = async (dataDir: string, name: string): Promise<string> => {
    const copy = join(root, name);
    cpSync(join(dataDir, 'journal'), join(copy, 'journal'), { recursive: true });
    for (const file of await readdir(join(copy, 'journal')))
      if (file.endsWith('.lock')) await truncate(join(copy, 'journal', file));
    return copy;
  };

  const say = async (session: ContextSession, texts: readonly string[]): Promise<void> => {
    for (const content of texts) await session.recordCall(callReport({ tool: 'bash', content }));
  };

  const contents = async (id: SessionId): Promise<readonly string[]> => {
    const { store } = await open(join(root, 'reader'));
    const snapshot = await store.latest();
    const steps = await snapshot.steps(id);
    expect(steps.map(({ seq }) => seq)).toEqual(steps.map((_, i) => i + 1));
    const calls = steps.flatMap(({ call }) => (call === undefined ? [] : [call.id]));
    const versions = await snapshot.getMany(calls);
    return calls.map((call) => versions.get(call)?.version.content ?? '');
  };

  const allBytes = async (folder: string): Promise<Readonly<Record<string, string>>> => {
    const names = (await readdir(folder)).sort();
    return Object.fromEntries(
      await Promise.all(names.map(async (name) => [name, await readFile(join(folder, name), 'latin1')] as const)),
    );
  };

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-left-')));
    road = new Road(root);
    await road.open();
    notices.length = 0;
  });

  afterEach(async () => {
    await road.open();
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
    await road.close();
    await rm(root, { recursive: true, force: true });
  });

  test('are shown first, then delivered once and in order, even if their process continues', async () => {
    const owner = await open(join(root, 'there'), road.address);
    const known = await owner.openSession();
    await say(known, ['one', 'two']);
    await owner.delivered();
    await road.close();
    await say(known, ['three', 'four', 'five']);
    const fresh = await owner.openSession();
    await say(fresh, ['first', 'second']);
    const left = await copyOf(join(root, 'there'), 'copy');
    const before = await allBytes(join(left, 'journal'));

    const plan = await planAdoption(left, here());
    expect(plan.sessions).toMatchObject([
      { session: known.id, fate: 'continues', steps: [expect.any(Number), known.state.seq] },
      { session: fresh.id, fate: 'begins', stored: 0, steps: [1, fresh.state.seq] },
    ]);
    expect(undelivered(plan)).toBeGreaterThanOrEqual(5);
    expect(await contents(known.id)).toEqual(['one', 'two']);

    const adopted = await adoptJournals(left, here(), options);
    expect(adopted.sessions.map(({ fate }) => fate)).toEqual(['stored', 'stored']);
    expect(await adoptJournals(left, here(), options)).toEqual(adopted);
    expect(await allBytes(join(left, 'journal'))).toEqual(before);
    expect(await contents(known.id)).toEqual(['one', 'two', 'three', 'four', 'five']);
    expect(await contents(fresh.id)).toEqual(['first', 'second']);

    // The host was only disconnected: the database already has its steps, and it still owns its
    // sessions.
    await road.open();
    await say(known, ['six']);
    await say(fresh, ['third']);
    await owner.delivered();
    expect(await contents(known.id)).toEqual(['one', 'two', 'three', 'four', 'five', 'six']);
    expect(await contents(fresh.id)).toEqual(['first', 'second', 'third']);
    expect((await verifySession(owner.store, known.id)).ok).toBe(true);
    expect(notices).toEqual([]);
  });

  test('create for a continued session the same fork that their own process would create', async () => {
    const owner = await open(join(root, 'there'), road.address);
    const session = await owner.openSession();
    await say(session, ['one']);
    await owner.delivered();
    await road.close();
    await say(session, ['two', 'three']);
    const left = await copyOf(join(root, 'there'), 'copy');
    const theirs = await open(join(root, 'other'));
    const other = await theirs.openSession({ id: session.id });
    await say(other, ['their two']);
    await theirs.delivered();

    const fork = { id: expect.stringMatching(/\.fork-1-2$/), first: 2 };
    expect((await planAdoption(left, here())).sessions).toMatchObject([{ session: session.id, fate: 'forks', fork }]);
    const { sessions } = await adoptJournals(left, here(), options);
    expect(sessions).toMatchObject([{ session: session.id, fate: 'stored', fork }]);
    await adoptJournals(left, here(), options);
    const id = sessions[0]?.fork?.id as SessionId;
    expect(await contents(id)).toEqual(['one', 'two', 'three']);
    expect(await contents(session.id)).toEqual(['one', 'their two']);

    await road.open();
    await expect(
      session.recordCall(callReport({ tool: 'bash', content: 'four' })).then(({ applied }) => applied),
    ).rejects.toMatchObject({
      code: 'taken-over',
    });
    await owner.delivered();
    expect((await contents(id)).slice(0, 3)).toEqual(['one', 'two', 'three']);
    const forks = (await clients[0]?.store.latest().then((snapshot) => snapshot.sessions()))?.filter(
      ({ parent }) => parent?.session === session.id,
    );
    expect(forks?.map((one) => one.id)).toEqual([id]);
    await say(other, ['their three']);
    await theirs.delivered();
    expect(await contents(session.id)).toEqual(['one', 'their two', 'their three']);
  });

  test('are refused unchanged if their process lives here, none exist, or they are from another database', async () => {
    await road.close();
    const owner = await open(join(root, 'there'), road.address);
    const session = await owner.openSession();
    await say(session, ['one', 'two']);
    const refused = (folder: string) =>
      adoptJournals(folder, here(), options).then(
        () => 'adopted',
        ({ code }: { readonly code: string }) => code,
      );
    expect(await refused(join(root, 'there'))).toBe('owner-lives');
    expect(await refused(join(root, 'nothing'))).toBe('no-journals');
    const left = await copyOf(join(root, 'there'), 'copy');
    await mkdir(join(left, 'golden'));
    expect(await refused(left)).toBe('other-database');
    await rm(join(left, 'golden'), { recursive: true });
    // The first record of its session is unreadable.
    const damaged = await copyOf(join(root, 'there'), 'damaged');
    for (const file of (await readdir(join(damaged, 'journal'))).filter((one) => !one.endsWith('.lock'))) {
      const path = join(damaged, 'journal', file);
      const bytes = await readFile(path);
      const at = bytes.indexOf('"session"');
      bytes.fill(0x21, at, at + 4);
      await writeFile(path, bytes);
    }
    await expect(adoptJournals(damaged, here(), options)).rejects.toMatchObject({
      code: 'damaged',
      message: expect.stringMatching(/is damaged.*journal salvage --data COPY/),
    });

    // The database was replaced: the beginning of the session went to the old one.
    const stray = join(root, 'stray');
    await mkdir(stray);
    const journal = await openJournal(stray);
    const [name] = await adoptableJournals(left);
    for await (const { payload } of waitingRecords(left, name ?? '')) {
      const write = readWrite(payload);
      if (!(write instanceof Error) && write.step !== undefined)
        await journal.append(encodePayload(encodeWrite(write)));
    }
    await journal.close();
    expect((await planAdoption(stray, here())).sessions).toMatchObject([
      { session: session.id, fate: 'unknown', stored: 0 },
    ]);
    expect(await refused(stray)).toBe('other-database');
    const own = join(root, 'here', 'remote');
    for (const folder of await readdir(own).catch(() => [])) {
      expect(await refused(join(own, folder))).toBe('own-folder');
      expect(await adoptableJournals(join(own, folder))).toEqual([]);
    }
    await writeFile(join(root, 'done'), '');
    expect(await refused(left)).toBe('adopted');
  });
});
