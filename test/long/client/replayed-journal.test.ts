import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';
import { appendFile, mkdtemp, readdir, readlink, realpath, rm, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { adoptableJournals } from '../../../src/journal/journals.js';
import { filesystemId, systemPromptObjectId } from '../../../src/objects/ids.js';
import { historyOf } from '../../support/object-history.js';
import { Road } from '../../support/road.js';
import { until } from '../../support/until.js';

/**
 * A client dies after the database has all of its acknowledged steps, but before its journal
 * records that. The next client replays all of them.
 */
describe('a journal that the database already has', () => {
  let root: string;
  let road: Road;
  const filesystem = filesystemId(`fs-${randomUUID()}`);
  const clients: ContextClient[] = [];

  const open = async (dataDir: string, onNotice: (line: string) => void = () => undefined): Promise<ContextClient> => {
    const address = { kind: 'unix', socketPath: road.socketPath } as const;
    const client = await ContextClient.create({
      address,
      roots: [root],
      cwd: root,
      filesystemId: filesystem,
      dataDir,
      onNotice,
    });
    clients.push(client);
    return client;
  };

  /**
   * Copies the journal to another data folder. That is the state after a kill that comes before the
   * journal records a delivery.
   */
  const journalOfTheDead = async (dataDir: string, name = 'copy'): Promise<string> => {
    const copy = join(root, name);
    cpSync(join(dataDir, 'journal'), join(copy, 'journal'), { recursive: true });
    for (const name of await readdir(join(copy, 'journal')))
      if (name.endsWith('.lock')) await truncate(join(copy, 'journal', name));
    expect((await adoptableJournals(copy)).length).toBeGreaterThan(0);
    return copy;
  };

  const call = (session: ContextSession, content: string) =>
    session.recordCall({ tool: 'bash', args: {}, status: 'ok', content, answer: (id) => `${id}: ${content}` });

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-replay-')));
    road = new Road(root);
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
    await road.close();
    await rm(root, { recursive: true, force: true });
  });

  test('changes nothing when replayed: no second version, no fork, the session continues [F5, F6]', async () => {
    const dataDir = join(root, 'data');
    const first = await open(dataDir);
    const session = await first.openSession();
    await session.setSystemPrompt('one');
    await session.reportMessage({ role: 'user', text: 'begin' });
    await call(session, 'a');
    await session.setSystemPrompt('two');
    await session.reportMessage({ role: 'user', text: 'again' });
    const { applied } = await call(session, 'b');
    const copy = await journalOfTheDead(dataDir);
    await road.open();
    await applied;
    const snapshot = await first.store.now();
    const before = await historyOf(snapshot, systemPromptObjectId(session.id));

    const second = await open(copy);
    const resumed = await second.openSession({ id: session.id });
    expect(resumed.state.seq).toBe(4);
    await call(resumed, 'c');
    expect((await second.close()).unflushed).toBe(0);
    const third = await open(join(root, 'third'));
    const known = (await third.listSessions()).filter(({ id }) => id.startsWith(session.id));
    expect(known.map(({ id }) => id)).toEqual([session.id]);
    const after = await historyOf(await third.store.now(), systemPromptObjectId(session.id));
    expect(after.map(({ version, txId }) => [version?.content, txId])).toEqual(
      before.map(({ version, txId }) => [version?.content, txId]),
    );
    expect(await adoptableJournals(copy)).toEqual([]);
  });

  test('delivers missing records after the stored ones', async () => {
    const dataDir = join(root, 'data');
    const first = await open(dataDir);
    const session = await first.openSession();
    await session.setSystemPrompt('one');
    await session.reportMessage({ role: 'user', text: 'begin' });
    const { applied } = await call(session, 'a');
    const early = await journalOfTheDead(dataDir, 'early');
    await road.open();
    await applied;
    await first.close();

    // The first records as they were before any delivery, and a later journal of steps that never
    // existed.
    await road.close();
    const next = await open(early);
    const going = next.openSession({ id: session.id });
    await road.open();
    const reopened = await going;
    await road.close();
    await reopened.setSystemPrompt('two');
    await reopened.setSystemPrompt('three');
    await call(reopened, 'b');
    const copy = await journalOfTheDead(early, 'late');
    await next.close();
    await road.open();

    const second = await open(copy);
    const resumed = await second.openSession({ id: session.id });
    expect(resumed.state.seq).toBe(3);
    const prompts = await historyOf(await second.store.now(), systemPromptObjectId(session.id));
    expect(prompts.map(({ version }) => version?.content)).toEqual([null, 'one', 'two', 'three']);
    const known = (await second.listSessions()).filter(({ id }) => id.startsWith(session.id));
    expect(known.map(({ id }) => id)).toEqual([session.id]);
  });

  test('is removed once drained, not only with its adopter, and its cut part is reported', async () => {
    const dataDir = join(root, 'data');
    const first = await open(dataDir);
    const session = await first.openSession();
    let last = await call(session, 'first');
    for (let i = 0; i < 60; i++) last = await call(session, `output ${i}`);
    const copy = await journalOfTheDead(dataDir);
    const folder = join(copy, 'journal');
    const [segment = ''] = (await readdir(folder)).filter((name) => name.endsWith('.wal'));
    await appendFile(join(folder, segment), 'half a fra');
    await road.open();
    await last.applied;
    await first.close();

    const notices: string[] = [];
    const second = await open(copy, (line) => notices.push(line));
    expect(notices).toEqual([
      expect.stringMatching(
        new RegExp(
          'the last 10 bytes of .*\\.wal, from byte \\d+ on, are not a complete record and were skipped; ' +
            'they were never acknowledged$',
        ),
      ),
    ]);
    await until(
      () => readdir(folder),
      (names) => names.length === 1 && names[0]?.endsWith('.lock') === true,
    );
    const opened = await Promise.all(
      (await readdir('/proc/self/fd')).map((fd) => readlink(`/proc/self/fd/${fd}`).catch(() => '')),
    );
    expect(opened.filter((path) => path.startsWith(folder))).toEqual([]);
    // The client continues with its own journal.
    expect((await second.openSession({ id: session.id })).state.seq).toBe(61);
    expect((await second.close()).unflushed).toBe(0);
    expect(await readdir(folder)).toEqual([]);
  });
});
