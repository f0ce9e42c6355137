import { randomUUID } from 'node:crypto';
import { cpSync, readdirSync, rmSync } from 'node:fs';
import { mkdtemp, readdir, realpath, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { filesystemId, type SessionId, systemPromptObjectId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import type { NodeAddress } from '../../../src/xtdb/address.js';
import { testAddress } from '../../support/context.js';
import { GateProxy } from '../../support/gate-proxy.js';
import { moment } from '../../support/moment.js';
import { historyOf } from '../../support/object-history.js';
import { Road } from '../../support/road.js';
import { runCli } from '../../support/run-cli.js';
import { callReport } from '../../support/tracked-project.js';

describe('a session taken over while another process delivers its steps', () => {
  let root: string;
  let road: Road;
  let slow: GateProxy;
  const filesystem = filesystemId(`fs-${randomUUID()}`);
  const clients: ContextClient[] = [];

  const open = async (dataDir: string, address: NodeAddress = testAddress()): Promise<ContextClient> => {
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

  const say = async (session: ContextSession, texts: readonly string[]): Promise<void> => {
    for (const content of texts) {
      const { applied } = await session.recordCall(callReport({ tool: 'bash', content }));
      applied.catch(() => undefined);
    }
  };

  const contents = async (id: SessionId): Promise<readonly string[]> => {
    const { store } = await open(join(root, `reader-${randomUUID()}`));
    const snapshot = await store.latest();
    const steps = await snapshot.steps(id);
    expect(steps.map(({ seq }) => seq)).toEqual(steps.map((_, i) => i + 1));
    const calls = steps.flatMap(({ call }) => (call === undefined ? [] : [call.id]));
    const versions = await snapshot.getMany(calls);
    expect((await verifySession(store, id)).ok).toBe(true);
    expect((await snapshot.sessions()).filter(({ parent }) => parent?.session === id)).toEqual([]);
    return calls.map((call) => versions.get(call)?.version.content ?? '');
  };

  /** Kills the processes of a folder's lock files, like kill -9. */
  const killAll = async (dataDir: string): Promise<void> => {
    for (const kind of ['journal', 'sessions'])
      for (const file of await readdir(join(dataDir, kind)).catch(() => []))
        if (file.endsWith('.lock')) await truncate(join(dataDir, kind, file));
  };

  /** Returns a data folder whose process was killed with steps in its journal. */
  const left = async (): Promise<{ readonly dataDir: string; readonly id: SessionId }> => {
    const owner = await open(join(root, 'owner'), road.address);
    const session = await owner.openSession();
    await say(session, ['one', 'two']);
    await owner.delivered();
    await road.close();
    await say(session, ['three', 'four', 'five']);
    const dataDir = join(root, 'left');
    cpSync(join(root, 'owner'), dataDir, { recursive: true });
    await killAll(dataDir);
    return { dataDir, id: session.id };
  };

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-taken-')));
    road = new Road(root);
    await road.open();
    slow = await new GateProxy(root, 'slow').open();
  });

  afterEach(async () => {
    slow.onSubmit = () => 'pass';
    await road.close();
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
    await slow.close();
    await rm(root, { recursive: true, force: true });
  });

  test('has every acknowledged step once, despite a slow deliverer with the dead process’s journal', async () => {
    const { dataDir, id } = await left();
    const [released, release] = moment();
    slow.onSubmit = () => released;
    const deliverer = await open(dataDir, slow.address);
    expect(deliverer.status.waiting).toBeGreaterThanOrEqual(3);
    const taker = await open(dataDir);
    const session = await taker.openSession({ id, takeOver: true });
    await say(session, ['six']);
    release();
    await deliverer.delivered();
    await taker.delivered();
    expect(await contents(id)).toEqual(['one', 'two', 'three', 'four', 'five', 'six']);
    expect(await Promise.all([deliverer.close(), taker.close()])).toEqual([{ unflushed: 0 }, { unflushed: 0 }]);
  });

  test('has every acknowledged step of a process whose database does not answer', async () => {
    const dataDir = join(root, 'shared');
    const owner = await open(dataDir, slow.address);
    const session = await owner.openSession();
    await say(session, ['one']);
    await owner.delivered();
    const [released, release] = moment();
    slow.onSubmit = () => released;
    await say(session, ['two', 'three']);
    const taker = await open(dataDir);
    const taken = await taker.openSession({ id: session.id, takeOver: true });
    await say(taken, ['four']);
    release();
    await owner.delivered();
    await taker.delivered();
    expect(await contents(session.id)).toEqual(['one', 'two', 'three', 'four']);
  });

  test('has the steps of the last writer, delivered by a process that lost the session before', async () => {
    const dataDir = join(root, 'shared');
    const owner = await open(dataDir, slow.address);
    const session = await owner.openSession();
    await say(session, ['one']);
    await owner.delivered();
    const [released, release] = moment();
    slow.onSubmit = () => released;
    // A change of the prompt is not a step and goes into no fork.
    await session.setSystemPrompt('a prompt that comes too late');
    const elsewhere = await open(join(root, 'elsewhere'));
    await (await elsewhere.openSession({ id: session.id })).close();
    release();
    await owner.delivered();
    expect(session.isLost).toBe(true);
    const last = await open(dataDir, road.address);
    const taken = await last.openSession({ id: session.id, takeOver: true });
    await last.delivered();
    await road.close();
    await say(taken, ['two', 'three']);
    // Only the journal of the last writer, because `owner` lives.
    await killAll(dataDir);
    await owner.delivered();
    expect(await contents(session.id)).toEqual(['one', 'two', 'three']);
  });

  test('and taken by another data folder first: verify and doctor name the steps that only a fork has', async () => {
    const owner = await open(join(root, 'owner'), slow.address);
    const session = await owner.openSession();
    await say(session, ['one']);
    await owner.delivered();
    const [released, release] = moment();
    slow.onSubmit = () => released;
    await say(session, ['two', 'three']);
    const elsewhere = await open(join(root, 'elsewhere'));
    await (await elsewhere.openSession({ id: session.id })).close();
    release();
    await owner.delivered();
    const node = testAddress();
    const url = node.kind === 'unix' ? `unix:${node.socketPath}` : '';
    const ask = (...args: readonly string[]) => runCli([...args, '--data', join(root, 'asked')], { XTDB_URL: url });
    const named =
      `steps 2 to 3 that an earlier writer of session ${session.id} acknowledged ` +
      `are in session ${session.id}.fork-1-2 only`;
    expect((await ask('verify', session.id)).stdout).toContain(`forked    ${named}\n`);
    expect((await ask('doctor')).stdout).toMatch(
      new RegExp(`look +steps-in-fork: .*\n +${named.replaceAll('.', '\\.')}\n`),
    );
  });

  test('has no step that its former process wrote after the takeover, and that process acknowledges none', async () => {
    const dataDir = join(root, 'shared');
    const owner = await open(dataDir);
    const session = await owner.openSession();
    await say(session, ['one']);
    const locks = join(dataDir, 'sessions');
    const takesLock = (id: string): string => {
      // Another process takes the lock after the check of the lock and before the write to the
      // journal.
      for (const file of readdirSync(locks)) rmSync(join(locks, file));
      return id;
    };
    await expect(
      session.recordCall({ ...callReport({ tool: 'bash', content: 'two' }), answer: takesLock }),
    ).rejects.toMatchObject({ code: 'taken-over' });
    const taker = await open(dataDir);
    const taken = await taker.openSession({ id: session.id, takeOver: true });
    await say(taken, ['three']);
    await Promise.all([owner.delivered(), taker.delivered()]);
    expect(await contents(session.id)).toEqual(['one', 'three']);
    expect(owner.status.waiting).toBe(0);
  });

  test('stays with its last taker, though an earlier one is still opening it', async () => {
    const dataDir = join(root, 'shared');
    const owner = await open(dataDir);
    const session = await owner.openSession();
    await say(session, ['one']);
    await owner.delivered();
    const [released, release] = moment();
    const [caught, onCaught] = moment();
    slow.onSubmit = () => {
      onCaught();
      return released;
    };
    const earlier = await open(dataDir, slow.address);
    const opening = earlier.openSession({ id: session.id, takeOver: true });
    await caught;
    const last = await open(dataDir, road.address);
    const taken = await last.openSession({ id: session.id, takeOver: true });
    await road.close();
    await say(taken, ['two', 'three']);
    release();
    await expect(opening).rejects.toMatchObject({ code: 'taken-over' });
    await road.open();
    await last.delivered();
    expect(await contents(session.id)).toEqual(['one', 'two', 'three']);
  });

  test('has a prompt only once that its former process and the taker deliver at the same time', async () => {
    const dataDir = join(root, 'shared');
    const owner = await open(dataDir, slow.address);
    const session = await owner.openSession();
    await owner.delivered();
    const [released, release] = moment();
    slow.onSubmit = () => released;
    await session.setSystemPrompt('be brief');
    const beside = await new GateProxy(root, 'beside').open();
    beside.onSubmit = (_body, nth) => {
      // The first transaction is the prompt, the second one the takeover.
      if (nth !== 1) return 'pass';
      release();
      return owner.delivered().then(() => undefined);
    };
    const taker = await open(dataDir, beside.address);
    await taker.openSession({ id: session.id, takeOver: true });
    const prompts = await historyOf(await taker.store.latest(), systemPromptObjectId(session.id));
    expect(prompts.map(({ version }) => version?.content)).toEqual([null, 'be brief']);
    expect(beside.submits).toBe(2);
    await taker.close();
    await beside.close();
  });

  test('is forked with all steps if the awaited deliverer is killed', async () => {
    const { dataDir, id } = await left();
    const [caught, onCaught] = moment();
    slow.onSubmit = () => {
      onCaught();
      return new Promise(() => undefined);
    };
    await open(dataDir, slow.address);
    await caught;
    const client = await open(dataDir);
    const making = client.makeFork(id);
    await killAll(dataDir);
    expect((await making).parent).toEqual({ session: id, seq: 5 });
  });
});
