import { randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { filesystemId, type SessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { LateAnswers } from '../../support/late-answers.js';
import { callReport } from '../../support/tracked-project.js';

const HOUR_MS = 3_600_000;

/** Two hosts share no lock, only the head of the session in the database. */
describe.each([
  ['an hour ahead', HOUR_MS],
  ['an hour behind', -HOUR_MS],
])('a session opened by two hosts, the clock of the second %s [decision F5]', (_, skewMs) => {
  let root: string;
  const clients: ContextClient[] = [];
  const roads: LateAnswers[] = [];

  /** A host: a data folder, a filesystem, a clock, and a separate connection to the node. */
  const host = async (
    name: string,
    clock: () => number = Date.now,
  ): Promise<{ readonly client: ContextClient; readonly road: LateAnswers }> => {
    const folder = await mkdtemp(join(root, name));
    const road = await LateAnswers.open(folder);
    roads.push(road);
    const client = await ContextClient.create({
      address: road.address,
      roots: [root],
      cwd: root,
      filesystemId: filesystemId(`fs-${randomUUID()}`),
      dataDir: join(folder, 'data'),
      track: false,
      clock,
    });
    clients.push(client);
    return { client, road };
  };

  const say = async (session: ContextSession, content: string) => {
    const { applied } = await session.recordCall(callReport({ tool: 'bash', content }));
    return applied.then(
      () => 'delivered',
      ({ code }: { readonly code: string }) => code,
    );
  };

  const contents = async (client: ContextClient, id: SessionId): Promise<readonly string[]> => {
    const snapshot = await client.store.latest();
    const steps = await snapshot.steps(id);
    expect(steps.map(({ seq }) => seq)).toEqual(steps.map((_, i) => i + 1));
    const calls = steps.flatMap(({ call }) => (call === undefined ? [] : [call.id]));
    const versions = await snapshot.getMany(calls);
    return calls.map((call) => versions.get(call)?.version.content ?? '');
  };

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-hosts-')));
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close()));
    await Promise.all(roads.splice(0).map((road) => road.close()));
    await rm(root, { recursive: true, force: true });
  });

  test('belongs to the second; acknowledged steps of the first are whole in a fork, and both continue', async () => {
    const [first, second] = [await host('a'), await host('b', () => Date.now() + skewMs)];
    const session = await first.client.openSession();
    await session.reportMessage({ role: 'user', text: 'begin' });
    expect(await say(session, 'shared')).toBe('delivered');
    await first.client.delivered();

    const release = first.road.holdWrites();
    const late = [say(session, 'late one'), say(session, 'late two')];
    await session.reportMessage({ role: 'user', text: 'a turn that nobody sees' });
    late.push(say(session, 'late three'));
    const taken = await second.client.openSession({ id: session.id });
    expect(await say(taken, 'theirs')).toBe('delivered');
    await taken.reportMessage({ role: 'user', text: 'another turn' });
    expect(await say(taken, 'theirs too')).toBe('delivered');
    await second.client.delivered();
    release();

    expect(await Promise.all(late)).toEqual(['taken-over', 'taken-over', 'taken-over']);
    await first.client.delivered();
    expect(await contents(second.client, session.id)).toEqual(['shared', 'theirs', 'theirs too']);
    const sessions = await (await second.client.store.latest()).sessions();
    const forks = sessions.filter(({ parent }) => parent?.session === session.id);
    expect(forks).toHaveLength(1);
    const fork = forks[0]?.id as SessionId;
    expect(await contents(second.client, fork)).toEqual(['shared', 'late one', 'late two', 'late three']);
    expect((await verifySession(second.client.store, fork)).ok).toBe(true);
    expect((await verifySession(second.client.store, session.id)).ok).toBe(true);

    // Each host continues with its own session. The first takes its session back, so the second
    // loses it.
    expect(await say(await first.client.openSession({ id: fork }), 'on')).toBe('delivered');
    expect(await say(taken, 'on too')).toBe('delivered');
    const back = await first.client.openSession({ id: session.id });
    expect(await say(back, 'back')).toBe('delivered');
    expect(await say(taken, 'too late')).toBe('taken-over');
    await second.client.delivered();
    expect(await contents(first.client, session.id)).toEqual(['shared', 'theirs', 'theirs too', 'on too', 'back']);
    const all = await (await first.client.store.latest()).sessions();
    const [kept] = all.filter(({ id, parent }) => parent?.session === session.id && id !== fork);
    expect(await contents(first.client, kept?.id as SessionId)).toEqual([
      'shared',
      'theirs',
      'theirs too',
      'on too',
      'too late',
    ]);
    expect((await back.assemble()).text).toContain('on too');
  });

  test('has each acknowledged step in the session or in a fork if both write at once and either wins', async () => {
    const [first, second] = [await host('a'), await host('b', () => Date.now() + skewMs)];
    const session = await first.client.openSession();
    expect(await say(session, 'shared')).toBe('delivered');
    await first.client.delivered();
    const acknowledged: string[] = [];
    const work = async (client: ContextClient, name: string, rounds: number): Promise<void> => {
      for (let round = 0; round < rounds; round++) {
        const mine = await client.openSession({ id: session.id });
        for (let i = 0; i < 4; i++) {
          const content = `${name} ${round}.${i}`;
          const told = await mine.recordCall(callReport({ tool: 'bash', content })).then(
            ({ applied }) => {
              acknowledged.push(content);
              return applied.then(
                () => true,
                () => false,
              );
            },
            () => undefined,
          );
          if (told !== true) break;
        }
      }
    };
    await Promise.all([work(first.client, 'a', 4), work(second.client, 'b', 4)]);
    await Promise.all([first.client.delivered(), second.client.delivered()]);
    const all = await (await first.client.store.latest()).sessions();
    const family: SessionId[] = [session.id];
    // A fork that was opened while it received steps has a fork itself.
    for (const id of family) family.push(...all.filter(({ parent }) => parent?.session === id).map((one) => one.id));
    const own = new Map<string, number>();
    for (const id of family) {
      const shared = all.find((one) => one.id === id)?.parent?.seq ?? 0;
      const snapshot = await first.client.store.latest();
      for (const step of await snapshot.steps(id, { first: shared + 1 })) {
        const content = step.call === undefined ? undefined : (await snapshot.get(step.call.id))?.version.content;
        if (content != null) own.set(content, (own.get(content) ?? 0) + 1);
      }
    }
    for (const content of acknowledged) expect([content, own.get(content)]).toEqual([content, 1]);
  });
});
