import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { filesystemId, sessionObjectId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { SNAPSHOT_EVERY, stepId } from '../../../src/store/step-part.js';
import { openClient, wholeRead } from '../../support/context.js';
import { FormerIds } from '../../support/former-ids.js';
import { historyOf } from '../../support/object-history.js';
import { callReport } from '../../support/tracked-project.js';
import { openTestClient } from '../../support/xtdb.js';

const LONG = 'a long text\n'.repeat(300);
const LARGE = 'a very long text\n'.repeat(90_000);

describe('a database written before data format 2', () => {
  const filesystem = filesystemId(`fs-${randomUUID()}`);
  const xtdb = openTestClient();
  let root: string;
  let proxy: FormerIds;
  const clients: ContextClient[] = [];

  const open = async (address?: FormerIds['address'], dataDir?: string): Promise<ContextClient> => {
    const options = {
      filesystemId: filesystem,
      ...(address && { address }),
      ...(dataDir && { dataDir: join(root, dataDir) }),
    };
    const client = await openClient(root, options);
    clients.push(client);
    return client;
  };

  /**
   * Makes a session with every kind of part: long messages, files of one and of several chunks, a
   * snapshot, and a context record.
   */
  const work = async (client: ContextClient): Promise<ContextSession> => {
    const session = await client.openSession();
    await session.reportMessage({ role: 'user', text: `${LONG}${session.id}` });
    for (const name of ['long.txt', 'large.txt'])
      await session.recordCall(callReport({ content: LONG, readings: [await wholeRead(client, join(root, name))] }));
    while (session.state.seq < SNAPSHOT_EVERY + 2)
      await session.recordCall(callReport({ tool: 'bash', content: String(session.state.seq) }));
    await session.assemble({ deliver: 'library' });
    return session;
  };

  const partsOf = async (session: string): Promise<readonly unknown[]> => {
    const snapshot = await (await open()).store.latest();
    return [...(await snapshot.times([1, 2].map((seq) => stepId(session as never, seq)))).keys()];
  };

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-former-')));
    await writeFile(join(root, 'long.txt'), LONG);
    await writeFile(join(root, 'large.txt'), LARGE);
    proxy = await FormerIds.open(root);
  });
  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
    await proxy.close();
    await rm(root, { recursive: true, force: true });
  });

  test('reads as before, verifies, and continues', async () => {
    const former = await open(proxy.address);
    const before = await work(former);
    const { id } = before;
    const then = await former.store.latest();
    const versions = (await historyOf(then, sessionObjectId(id))).map(({ version }) => version);
    const said = [await then.steps(id), await then.sets(id), versions];
    const { text } = await before.assemble();
    await former.close();
    expect(await partsOf(id)).toEqual([]);

    const now = await open();
    const there = await now.store.latest();
    const steps = await there.steps(id);
    expect([
      steps,
      await there.sets(id),
      (await historyOf(there, sessionObjectId(id))).slice(0, versions.length).map(({ version }) => version),
    ]).toEqual(said);
    const lineage = await there.lineage(id);
    if (lineage === undefined) throw new Error(`${id} is not there`);
    expect(await there.stepsAlong(lineage, { first: 1, last: steps.length + 3 })).toEqual(steps);
    expect(await there.step(id, 2)).toEqual(steps[1]);
    expect([...(await there.existingSteps(lineage, [1, 2, 9_999]))]).toEqual([1, 2]);
    expect([...(await there.stepTimes(id, [1, 2, 9_999])).keys()]).toEqual([1, 2]);
    const resumed = await now.openSession({ id });
    expect((await resumed.assemble({ deliver: 'library' })).text).toBe(text);
    expect(await verifySession(now.store, id)).toMatchObject({ ok: true, contexts: { total: 1, equal: 1 } });

    await resumed.reportMessage({ role: 'user', text: `${LONG}${id}` });
    await resumed.recordCall(callReport({ content: LARGE }));
    await resumed.assemble({ deliver: 'library' });
    const fork = await now.forkSession(id, { at: 5 });
    await fork.recordCall(callReport());
    for (const session of [id, fork.id]) expect(await verifySession(now.store, session)).toMatchObject({ ok: true });
    expect((await (await now.store.latest()).times([stepId(id, steps.length + 1)])).size).toBe(1);
  });

  test('gets nothing twice from a journal left by a kill', async () => {
    const former = await open(proxy.address, 'data');
    const session = await work(former);
    await former.snapshot();
    // As a kill leaves it before the journal says what was delivered.
    cpSync(join(root, 'data', 'journal'), join(root, 'dead', 'journal'), { recursive: true });
    for (const name of await readdir(join(root, 'dead', 'journal')))
      if (name.endsWith('.lock')) await truncate(join(root, 'dead', 'journal', name));
    const { seq } = session.state;
    await former.close();

    const now = await open(undefined, 'dead');
    await now.snapshot();
    expect(await partsOf(session.id)).toEqual([]);
    const resumed = await now.openSession({ id: session.id });
    expect(resumed.state.seq).toBe(seq);
    await resumed.recordCall(callReport());
    await now.snapshot();
    expect((await now.listSessions()).filter(({ id }) => id.startsWith(session.id))).toHaveLength(1);
    expect(await verifySession(now.store, session.id)).toMatchObject({ ok: true, contexts: { total: 1 } });
  });

  test('protects its parts from calls with given ids', async () => {
    const former = await open(proxy.address);
    const session = await work(former);
    await former.close();
    const db = await xtdb.db();
    const id = `step:${session.id}:2`;
    expect(await db.entity(id)).toMatchObject({ type: 'step' });
    const other = await (await open()).openSession();
    const { callId } = await other.recordCall(callReport({ callId: id }));
    expect(callId).toBe(`${id}@${other.id}`);
    expect(await (await xtdb.db()).entity(id)).toMatchObject({ type: 'step' });
  });
});
