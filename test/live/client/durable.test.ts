import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { filesystemId } from '../../../src/objects/ids.js';
import { clientFolder } from '../../../src/process/data-folder.js';
import { DEFAULT_POLICY } from '../../../src/session/step-policy.js';
import { testAddress, wholeRead } from '../../support/context.js';
import { Road } from '../../support/road.js';
import { runCli } from '../../support/run-cli.js';
import { callReport as call } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

describe('a client with a journal', () => {
  let root: string;
  let road: Road;
  const clients: ContextClient[] = [];
  const filesystem = filesystemId(`fs-durable-${Date.now()}`);

  const open = async (options: Partial<ContextClientOptions> = {}): Promise<ContextClient> => {
    const client = await ContextClient.create({
      address: road.address,
      roots: [root],
      cwd: root,
      filesystemId: filesystem,
      dataDir: join(root, 'data'),
      ...options,
    });
    clients.push(client);
    return client;
  };

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-durable-')));
    road = new Road(root);
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
    await road.close();
    await rm(root, { recursive: true, force: true });
  });

  test('works during an outage of the database, and delivers acknowledged steps in order [F4, H5]', async () => {
    const client = await open();
    const session = await client.openSession();
    await writeFile(join(root, 'a.ts'), 'const a = 1;');
    const read = await session.recordCall(
      call({ readings: [await wholeRead(client, 'a.ts')], content: 'const a = 1;' }),
    );
    for (let i = 0; i < 20; i++) await session.recordCall(call({ tool: 'bash', content: `output ${i}` }));
    const away = await session.assemble();
    expect(away.text).toContain('output 19');
    expect(away.record.basis).toBeUndefined();
    expect((await session.load(read.callId))?.version.content).toBe('const a = 1;');
    const plan = await session.planVerb('activate', [read.callId]);
    expect(plan.entries).toMatchObject([{ ok: true, text: 'const a = 1;' }]);
    await road.open();
    const { outcomes } = await read.applied;
    expect([...outcomes.values()]).toEqual(['created']);
    const back = await until(
      () => session.assemble(),
      ({ record }) => record.basis !== undefined,
    );
    expect(back.text).toBe(away.text);
    expect((await (await client.store.now()).steps(session.id)).map(({ seq }) => seq)).toEqual(
      Array.from({ length: 21 }, (_, i) => i + 1),
    );
  });

  test('ignores a refused call: the sets follow as if it had not been made', async () => {
    const uses = { shown: 4, used: 4, request: 1_000, mostStretch: 1 };
    const client = await open({
      queue: { maxPending: 8 },
      policy: { ...DEFAULT_POLICY, retention: 'use', uses },
      track: false,
    });
    await road.open();
    const [one, other] = [await client.openSession(), await client.openSession()];
    const take = (session: ContextSession, at: number) =>
      session.recordCall(call({ tool: 'bash', content: `output ${at} `.repeat(100) }));
    for (let at = 0; at < 3; at++) for (const session of [one, other]) await take(session, at);
    await client.backpressure(0, 240_000);
    await road.close();
    for (let full = false; !full; )
      full = await client.openSession().then(
        () => false,
        (error) => error.code === 'full',
      );
    for (let at = 0; at < 20; at++) await expect(take(one, at)).rejects.toMatchObject({ code: 'full' });
    await road.open();
    await client.backpressure(0, 240_000);
    for (const session of [one, other]) await take(session, 3);
    const places = ({ state }: ContextSession) => state.sets.active.map((id) => state.sets.index.indexOf(id));
    expect(places(one)).toEqual(places(other));
    expect(places(one).length).toBeGreaterThan(1);
  });

  test('leaves undelivered steps to the next client of the data folder, which delivers them once [F6]', async () => {
    const first = await open();
    const session = await first.openSession();
    for (let i = 0; i < 5; i++) await session.recordCall(call({ content: `kept ${i}` }));
    const report = await first.close();
    expect(report.unflushed).toBeGreaterThanOrEqual(6);
    await road.open();
    const second = await open();
    const resumed = await second.openSession({ id: session.id });
    expect(resumed.state.seq).toBe(5);
    expect(resumed.state.sets).toEqual(session.state.sets);
    expect((await second.close()).unflushed).toBe(0);
    const third = await open();
    const again = await third.openSession({ id: session.id });
    expect(again.state.turns).toEqual(session.state.turns);
  });

  test('opens a session with the steps that another process acknowledged and holds in its journal', async () => {
    const second = new Road(join(root, 'data'));
    const first = await open();
    const session = await first.openSession();
    for (let i = 0; i < 3; i++) await session.recordCall(call({ content: `held ${i}` }));
    await first.closeSession(session);
    await second.open();
    const other = await open({ address: second.address });
    const opening = other.openSession({ id: session.id });
    await road.open();
    expect((await opening).state.seq).toBe(3);
    await second.close();
  });

  test('does not verify a session while a process holds its steps; a reader delivers them later [F6]', async () => {
    const port = await Road.fromPort(root);
    const dataDir = join(root, 'reviewed');
    try {
      await road.open();
      const client = await open({ dataDir: clientFolder(dataDir, port.url) });
      const session = await client.openSession();
      await (await session.recordCall(call({ content: 'delivered' }))).applied;
      const verify = () => runCli(['verify', session.id, '--data', dataDir], { XTDB_URL: port.url });
      expect(await verify()).toMatchObject({ code: 0, stdout: expect.stringContaining(`${session.id}: verified`) });
      await road.close();
      await session.recordCall(call({ content: 'acknowledged' }));
      const { code, stdout } = await verify();
      expect(code).toBe(1);
      expect(stdout).toContain(`${session.id}: NOT VERIFIED`);
      expect(stdout).toMatch(/NOT CHECKED: \d acknowledged steps wait in a journal/);
      expect((await client.close()).unflushed).toBeGreaterThan(0);
      const shown = await runCli(['log', session.id, '--data', dataDir, '--json'], { XTDB_URL: port.url });
      expect(JSON.parse(shown.stdout)).toMatchObject({ notes: [], turns: [{ last_step: 2 }] });
      expect(await verify()).toMatchObject({ code: 0, stdout: expect.stringContaining(`${session.id}: verified`) });
    } finally {
      await port.close();
    }
  });

  test('warns as its queue nears the bound, refuses beyond it unwritten, and continues after the outage', async () => {
    const client = await open({ queue: { maxPending: 11 } });
    const session = await client.openSession();
    const answers = [];
    for (let i = 0; i < 10; i++) answers.push((await session.recordCall(call({ content: `queued ${i}` }))).answer);
    expect(answers[0]).not.toContain('Palimpsest:');
    expect(answers.at(-1)).toMatch(/1[01] steps wait for the database/);
    await expect(session.recordCall(call({ content: 'one too many' }))).rejects.toMatchObject({
      name: 'JournalError',
      code: 'full',
    });
    expect(session.state.seq).toBe(10);
    await road.open();
    await client.snapshot();
    await session.recordCall(call({ content: 'after the outage' }));
    const steps = await (await client.snapshot()).steps(session.id);
    expect(steps.map(({ seq }) => seq)).toEqual(Array.from({ length: 11 }, (_, i) => i + 1));
  });

  test("refuses another client's session by name unless taken over; the first notices at its next step", async () => {
    await road.open();
    const [first, second] = [await open(), await open()];
    const session = await first.openSession();
    await session.recordCall(call({ content: 'one' }));
    await expect(second.openSession({ id: session.id })).rejects.toMatchObject({
      code: 'lease-held',
      message: expect.stringContaining(String(process.pid)),
    });
    const moved = await second.openSession({ id: session.id, takeOver: true });
    await expect(session.recordCall(call({ content: 'too late' }))).rejects.toMatchObject({ code: 'taken-over' });
    await moved.recordCall(call({ content: 'two' }));
    const { text } = await moved.assemble();
    expect(text).toContain('two');
    expect(text).not.toContain('too late');
  });

  test('keeps in a fork the steps of a former writer that another one overtook [decision F6]', async () => {
    await road.open();
    const first = await open();
    const session = await first.openSession();
    const { applied } = await session.recordCall(call({ content: 'before' }));
    await applied;
    await road.close();
    const lost = await session.recordCall(call({ content: 'acknowledged, not delivered' }));
    const elsewhere = await ContextClient.create({
      address: testAddress(),
      roots: [root],
      cwd: root,
      filesystemId: filesystem,
    });
    clients.push(elsewhere);
    const other = await elsewhere.openSession({ id: session.id });
    await other.recordCall(call({ content: 'by the other writer' }));
    await road.open();
    await expect(lost.applied).rejects.toMatchObject({
      code: 'taken-over',
      message: expect.stringContaining('.fork-'),
    });
    const fork = (await elsewhere.listSessions()).find(({ parent }) => parent?.session === session.id);
    const kept = await elsewhere.openSession({ id: fork?.id ?? '' });
    const { text } = await kept.assemble();
    expect(text).toContain('acknowledged, not delivered');
    expect(text).toContain('before');
    expect(text).not.toContain('by the other writer');
  });
});
