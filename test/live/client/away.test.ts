import { cp, mkdtemp, readdir, realpath, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { makeBundle } from '../../../src/bundle/export-bundle.js';
import { fileObjectId } from '../../../src/client/file-access.js';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { filesystemId, type SessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { mentions, testAddress } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { GateProxy } from '../../support/gate-proxy.js';
import { moment } from '../../support/moment.js';
import { callReport as call, contentsOf } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

const FILES = ['a.ts', 'b.ts', 'c.ts'] as const;
let names = 0;

describe('a context assembled without the database is rebuilt equally', () => {
  let root: string;
  let proxy: GateProxy;
  let filesystem: ReturnType<typeof filesystemId>;
  const clients: ContextClient[] = [];

  const open = async (options: Partial<ContextClientOptions> = {}): Promise<ContextClient> => {
    const settings = { address: proxy.address, roots: [root], cwd: root, filesystemId: filesystem, track: false };
    const client = await ContextClient.create({ ...settings, ...options });
    clients.push(client);
    return client;
  };
  const agent = (options: Partial<ContextClientOptions> = {}) =>
    open({ dataDir: join(root, `data-${names++}`), ...options });
  /** A client whose writes are not held back. */
  const elsewhere = () => open({ address: testAddress() });

  beforeAll(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-away-')));
    proxy = await new GateProxy(root).open();
  });
  beforeEach(() => {
    filesystem = filesystemId(`fs-away-${process.pid}-${names++}`);
  });
  afterEach(async () => {
    proxy.onSubmit = () => 'pass';
    proxy.cutsAnswers = false;
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
  });
  afterAll(async () => {
    await proxy.close();
    await rm(root, { recursive: true, force: true });
  });

  const write = (file: string, text: string) => writeFile(join(root, file), text);
  const reads = async (client: ContextClient, session: ContextSession, file: string) => {
    const { source } = await client.files.locate(file, { mustExist: false });
    return session.recordCall(
      call({ readings: [{ source, reading: await client.files.read(source), activate: true }] }),
    );
  };
  const handOut = (session: ContextSession) => session.assemble({ timeoutMs: 0, deliver: 'library' });
  const settled = (client: ContextClient): Promise<void> => client.backpressure(0, 240_000);
  async function expectProved(id: SessionId, total: number): Promise<void> {
    const { contexts } = await verifySession(await (await elsewhere()).delivered(), id);
    expect(contexts).toMatchObject({ total, equal: total, unequal: [] });
  }
  /** Opens two sessions of a client that share a file. */
  async function sharing(client: ContextClient, file: string): Promise<readonly [ContextSession, ContextSession]> {
    await write(file, 'first text');
    const sessions = [await client.openSession(), await client.openSession()] as const;
    for (const session of sessions) await (await reads(client, session, file)).applied;
    return sessions;
  }

  test('although it shows pending writes of another session of its client, which the database gets later', async () => {
    const client = await agent();
    const [one, other] = await sharing(client, 'a.ts');
    const [[plain, release], [changed, releaseChanged]] = [moment(), moment()];
    proxy.onSubmit = (body) => (body.includes('the second text') ? changed : plain);
    await write('a.ts', 'the second text, which is longer');
    await reads(client, other, 'a.ts');
    const { applied } = await one.recordCall(call({ content: 'plain' }));
    const { text, record } = await handOut(one);
    expect(record.basis).toBeUndefined();
    expect(text).toContain('the second text');
    release();
    await applied;
    expect(await one.isDelivered(240_000)).toBe(true);
    releaseChanged();
    await settled(client);
    await expectProved(one.id, 1);
    // A bundle of the session contains the shown versions.
    const bundle = await makeBundle(await Timeline.open(await (await elsewhere()).delivered()), { session: one.id });
    let lines = '';
    for await (const line of bundle.lines()) lines += line;
    const shown =
      record.ahead?.flatMap(({ object_hash }) => (text.includes('the second text') ? [object_hash] : [])) ?? [];
    expect(shown.length).toBeGreaterThan(0);
    for (const hash of shown) expect(lines).toContain(`"object_hash":"${hash}"`);
  });

  test('although each answer breaks off midway, as if the node lost its connection', async () => {
    await write('a.ts', 'some text');
    const client = await agent();
    const session = await client.openSession();
    await (await reads(client, session, 'a.ts')).applied;
    // A read sees another client's write.
    await write('a.ts', 'another text');
    const other = await elsewhere();
    await (await reads(other, await other.openSession(), 'a.ts')).applied;
    proxy.cutsAnswers = true;
    const { text, record } = await session.assemble({ deliver: 'library' });
    expect(text).toContain('some text');
    expect(record.basis).toBeUndefined();
    proxy.cutsAnswers = false;
    await settled(client);
    await expectProved(session.id, 1);
  });

  test('although another client changes its files meanwhile', async () => {
    const client = await agent();
    const [one] = await sharing(client, 'b.ts');
    const [held, release] = moment();
    proxy.onSubmit = () => held;
    const { applied } = await one.recordCall(call({ content: 'plain' }));
    const direct = await elsewhere();
    await write('b.ts', 'what somebody else has written');
    await reads(direct, await direct.openSession(), 'b.ts');
    expect((await handOut(one)).text).toContain('first text');
    release();
    await applied;
    await settled(client);
    await expectProved(one.id, 1);
  });

  test.each([
    ['is', false],
    ['is not', true],
  ])(
    'with a tracker’s reading stored in the record, if its process ends before writing it and it %s the newest',
    async (_what, isOld) => {
      const dataDir = join(root, `data-${names++}`);
      const client = await open({ dataDir, track: true });
      const [one] = await sharing(client, 'c.ts');
      await until(
        () => client.tracking?.attached,
        (attached) => attached === 1,
      );
      const [held, release] = moment();
      proxy.onSubmit = () => held;
      const second = `the second text, which is longer\n${'.'.repeat(100_000)}`;
      await write('c.ts', second);
      await until(
        () => client.status.waiting,
        (waiting) => waiting === 1,
      );
      expect((await handOut(one)).text).toContain('the second text');
      const bytes = async () => {
        const names = await readdir(join(dataDir, 'journal'));
        return (await Promise.all(names.map((name) => stat(join(dataDir, 'journal', name))))).reduce(
          (sum, { size }) => sum + size,
          0,
        );
      };
      const before = await bytes();
      await one.assemble({ timeoutMs: 0, deliver: 'http' });
      // Stored once, however many contexts show it.
      expect((await bytes()) - before).toBeLessThan(50_000);
      // The state that a kill now would leave behind.
      const copy = join(root, `data-${names++}`);
      await cp(join(dataDir, 'journal'), join(copy, 'journal'), { recursive: true });
      for (const name of await readdir(join(copy, 'journal')))
        if (name.endsWith('.lock')) await truncate(join(copy, 'journal', name));
      const direct = await elsewhere();
      await write('c.ts', isOld ? 'a third text' : second);
      if (isOld) await reads(direct, await direct.openSession(), 'c.ts');
      await (await open({ address: testAddress(), dataDir: copy })).delivered({ others: false });
      await expectProved(one.id, 2);
      const id = fileObjectId((await client.files.locate('c.ts')).source);
      expect((await contentsOf(direct, id)).at(-1)).toBe(isOld ? 'a third text' : second);
      release();
      await settled(client);
      await expectProved(one.id, 2);
    },
  );

  test('although the file has changed by the time the record arrives: the newest version stays', async () => {
    const client = await agent({ track: true });
    const [one] = await sharing(client, 'c.ts');
    await until(
      () => client.tracking?.attached,
      (attached) => attached === 1,
    );
    const id = fileObjectId((await client.files.locate('c.ts', { mustExist: true })).source);
    const [[step, releaseStep], [file, releaseFile]] = [moment(), moment()];
    proxy.onSubmit = (body) =>
      body.includes('a plain output') ? step : body.includes('the second text') ? file : 'pass';
    const { applied } = await one.recordCall(call({ content: 'a plain output' }));
    await write('c.ts', 'the second text, which is longer');
    await until(
      () => client.status.waiting,
      (waiting) => waiting === 2,
    );
    expect((await handOut(one)).text).toContain('the second text');
    releaseFile();
    const newest = async () => (await contentsOf(client, id)).at(-1);
    await until(newest, (text) => text?.startsWith('the second') === true);
    await write('c.ts', 'the third text, which is longer still');
    await until(newest, (text) => text?.startsWith('the third') === true);
    releaseStep();
    await applied;
    await settled(client);
    expect(await newest()).toBe('the third text, which is longer still');
    await expectProved(one.id, 1);
  });

  test('also if it could not show all active contents for lack of texts', async () => {
    const client = await agent({ keptUnits: 4_000 });
    const session = await client.openSession();
    for (const file of FILES) {
      await write(file, `// ${file}\n`.repeat(200));
      await (await reads(client, session, file)).applied;
    }
    const { text, record } = await handOut(session);
    expect(record.absent?.texts.length).toBeGreaterThan(0);
    expect(text).toContain('a.ts');
    await settled(client);
    await expectProved(session.id, 1);
  });

  const operation = fc.record({
    kind: fc.constantFrom(
      'read',
      'read',
      'theirs',
      'gone',
      'mention',
      'said',
      'prompt',
      'hold',
      'pass',
      'hand',
      'hand',
      'wait',
      'current',
    ),
    file: fc.constantFrom(...FILES),
    of: fc.nat({ max: 1 }),
    isWritten: fc.boolean(),
  });

  test('with any writes pending, in any order of arrival', async () => {
    let local = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 8, maxLength: 25 }), async (operations) => {
        filesystem = filesystemId(`fs-away-${process.pid}-${names++}`);
        const [client, direct] = [await agent({ keptUnits: 20_000 }), await elsewhere()];
        const sessions = [await client.openSession(), await client.openSession()];
        const theirs = await direct.openSession();
        for (const file of FILES) await write(file, `// ${file}, first\n`);
        let [held, release] = [Promise.resolve(), (): void => undefined];
        // Half of the held writes arrive out of order.
        proxy.onSubmit = (body) => held.then(() => (body.length % 2 === 0 ? new Promise(setImmediate) : undefined));
        for (const [number, { kind, file, of, isWritten }] of operations.entries()) {
          const session = sessions[of] as ContextSession;
          if (isWritten) await write(file, `// ${file}, as of ${number}\n`);
          const moves: Readonly<Record<typeof kind, () => Promise<unknown>>> = {
            read: () => reads(client, session, file),
            theirs: () => reads(direct, theirs, file),
            gone: async () => {
              await rm(join(root, file), { force: true });
              await (isWritten ? reads(direct, theirs, file) : reads(client, session, file));
              await write(file, `// ${file}, again ${number}\n`);
            },
            mention: async () => session.recordCall(call({ tool: 'ls', mentions: await mentions(client, [file]) })),
            said: () => session.reportMessage({ role: 'user', text: `message ${number}` }),
            prompt: () => session.setSystemPrompt(`prompt ${number}`),
            hold: async () => {
              release();
              [held, release] = [...moment()];
            },
            pass: async () => release(),
            hand: async () => {
              const { record } = await handOut(session);
              if (record.basis === undefined) local += 1;
            },
            // As stored in the database; the client's knowledge moves on.
            current: async () => {
              release();
              await session.assemble({ deliver: 'library' });
            },
            wait: async () => {
              release();
              await settled(client);
            },
          };
          await moves[kind]();
        }
        release();
        await settled(client);
        for (const { id } of sessions) {
          const { contexts } = await verifySession(await direct.delivered(), id);
          expect(contexts).toMatchObject({ unequal: [], equal: contexts.total });
        }
        await Promise.all(clients.splice(0).map((one) => one.close()));
      }),
      {
        endOnFailure: true,
        numRuns: effort(6, 100),
        ...(process.env.PALIMPSEST_SEED === undefined ? {} : { seed: Number(process.env.PALIMPSEST_SEED) }),
      },
    );
    expect(local).toBeGreaterThan(0);
  });
});
