import { mkdtemp, realpath, rm, unlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ContextClientOptions } from '../../../src/client/session/client-options.js';
import { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { AssemblyRebuilder } from '../../../src/history/rebuild/rebuild-assembly.js';
import { filesystemId, type SessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { countRequests, mentions, wholeRead } from '../../support/context.js';
import { effort } from '../../support/effort.js';
import { LateAnswers } from '../../support/late-answers.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { Road } from '../../support/road.js';
import { callReport as call } from '../../support/tracked-project.js';
import { until } from '../../support/until.js';

const FILES = ['a.ts', 'b.ts', 'c.ts'] as const;
let names = 0;

describe('a context that waits for no transaction', () => {
  let root: string;
  let road: Road;
  let filesystem: ReturnType<typeof filesystemId>;
  // A separate node, because the test counts what others write.
  let node: OwnNode;
  const clients: ContextClient[] = [];

  const open = async (options: Partial<ContextClientOptions> = {}): Promise<ContextClient> => {
    const client = await ContextClient.create({
      address: road.address,
      roots: [root],
      cwd: root,
      filesystemId: filesystem,
      ...options,
    });
    clients.push(client);
    return client;
  };
  /** A client as a harness has it: with a journal. */
  const agent = () => open({ dataDir: join(root, 'data'), track: false });

  beforeAll(async () => {
    node = await ownNode();
  });
  afterAll(() => node.stop());

  beforeEach(async () => {
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-ahead-')));
    road = new Road(root, node.address);
    await road.open();
    filesystem = filesystemId(`fs-ahead-${process.pid}-${names++}`);
    for (const file of FILES) await writeFile(join(root, file), `// ${file}, first\n`);
  });

  afterEach(async () => {
    await Promise.all(clients.splice(0).map((client) => client.close().catch(() => undefined)));
    await road.close();
    await rm(root, { recursive: true, force: true });
  });

  /** The same holds for a file that no longer exists. */
  const reads = async (client: ContextClient, session: ContextSession, file: string): Promise<unknown> => {
    const { source } = await client.files.locate(file, { mustExist: false });
    return session.recordCall(
      call({ readings: [{ source, reading: await client.files.read(source), activate: true }] }),
    );
  };
  const handOut = (session: ContextSession) => session.assemble({ optimistic: true, timeoutMs: 5_000, deliver: 'pi' });
  /**
   * Assembles two contexts: if the database answers slowly, the second has what the first one
   * missed.
   */
  const withTheNext = async (session: ContextSession) => [(await handOut(session)).text, (await handOut(session)).text];
  const settled = (client: ContextClient): Promise<void> => client.backpressure(0, 240_000);

  /** The texts of all contexts of a session, rebuilt by a client without any knowledge. */
  async function madeAgain(id: SessionId): Promise<readonly string[]> {
    const reader = await open({ track: false });
    const snapshot = await reader.store.latest();
    const rebuilder = new AssemblyRebuilder(reader.store);
    const texts: string[] = [];
    for (const proof of await snapshot.assemblies(id)) texts.push((await rebuilder.rebuild(proof)).rendered.whole);
    expect(await verifySession(await reader.delivered(), id)).toMatchObject({
      ok: true,
      contexts: { total: texts.length, equal: texts.length },
    });
    return texts;
  }

  test('holds a just acknowledged step that the database lacks', async () => {
    const client = await agent();
    const session = await client.openSession();
    await session.reportMessage({ role: 'user', text: 'begin' });
    await settled(client);
    // A node that has just started may take longer than a context waits.
    while ((await handOut(session)).record.basis === undefined) await settled(client);
    await settled(client);
    await road.close();
    await reads(client, session, 'a.ts');
    await session.setSystemPrompt('be brief');
    const away = await handOut(session);
    expect(away.text).toContain('// a.ts, first');
    expect(away.record).toMatchObject({ step: 2, basis: { txId: expect.any(Number) } });
    expect(away.record.ahead).toHaveLength(2);
    await road.open();
    await settled(client);
    const next = await handOut(session);
    expect(next.text).toBe(away.text);
    await settled(client);
    expect((await madeAgain(session.id)).at(-1)).toBe(away.text);
  });

  test('holds the steps of a session begun during an outage, and its record names every shown object', async () => {
    const client = await agent();
    await client.listSessions();
    await road.close();
    const session = await client.openSession();
    await session.reportMessage({ role: 'user', text: 'begin' });
    await reads(client, session, 'a.ts');
    const away = await handOut(session);
    expect(away.record.basis).toBeUndefined();
    expect(away.record.ahead).toHaveLength(2);
    await road.open();
    await settled(client);
    expect(await madeAgain(session.id)).toEqual([away.text]);
  });

  test('makes one short query while there is no other writer', async () => {
    const client = await agent();
    const session = await client.openSession();
    for (const file of FILES) await reads(client, session, file);
    await handOut(session);
    await settled(client);
    for (const file of FILES) {
      await reads(client, session, file);
      await settled(client);
      const { requests } = await countRequests(() => session.assemble({ optimistic: true }));
      expect(requests).toEqual({ '/_xtdb/latest-completed-tx': 1 });
    }
  });

  test('holds another client’s earlier writes, and what it holds of a file stays as shown', async () => {
    const [client, other] = [await agent(), await open({ track: false })];
    const [session, theirs] = [await client.openSession(), await other.openSession()];
    await reads(client, session, 'a.ts');
    await handOut(session);
    await writeFile(join(root, 'a.ts'), '// a.ts, by somebody else\n');
    await reads(other, theirs, 'a.ts');
    expect((await withTheNext(session)).at(-1)).toContain('by somebody else');
    await unlink(join(root, 'a.ts'));
    await reads(other, theirs, 'a.ts');
    expect((await withTheNext(session)).at(-1)).toContain('[deleted]');
    await settled(client);
    expect((await madeAgain(session.id)).at(-1)).toContain('[deleted]');
  });

  test.each([
    ['that waits for no transaction', { optimistic: true }] as const,
    ['as the database has it', {}] as const,
  ])('of many objects, %s, reads only foreign writes since the last one', async (_how, options) => {
    const many = Array.from({ length: 300 }, (_, i) => `file-${i}.ts`);
    await Promise.all(many.map((name) => writeFile(join(root, name), `// ${name}`)));
    const [client, other] = [await agent(), await open({ track: false })];
    const [session, theirs] = [await client.openSession(), await other.openSession()];
    await session.recordCall(call({ mentions: await mentions(client, many) }));
    await reads(client, session, 'file-7.ts');
    await settled(client);
    await session.assemble(options);
    for (const name of ['file-7.ts', 'file-250.ts']) {
      await writeFile(join(root, name), `by somebody else: ${name}`);
      await reads(other, theirs, name);
      const line = `path=${root}/${name} file_type=ts char_count=${`by somebody else: ${name}`.length}`;
      const { sent } = await countRequests(() =>
        until(
          async () => (await session.assemble(options)).text,
          (text) => text.includes(line),
        ),
      );
      expect(sent).toBeLessThan(5_000);
    }
    expect((await session.assemble(options)).text).toContain('by somebody else: file-7.ts');
  });

  test('shows a file that was only mentioned here and read by others in its known state', async () => {
    const [client, other] = [await agent(), await open({ track: false })];
    const [session, theirs] = [await client.openSession(), await other.openSession()];
    await reads(other, theirs, 'b.ts');
    await handOut(session);
    await session.recordCall(call({ tool: 'ls', mentions: await mentions(client, ['b.ts', 'c.ts']) }));
    const text = (await withTheNext(session)).at(-1) ?? '';
    expect(text).toMatch(/type=file path=\S*b\.ts file_type=ts char_count=/);
    expect(text.match(/\[unread\]/g)).toHaveLength(1);
    await settled(client);
    expect((await madeAgain(session.id)).at(-1)).toBe(text);
  });

  test('catches up with its basis without reports on a transaction of its own process', async () => {
    const client = await agent();
    const before = await client.openSession();
    await before.close();
    const session = await client.openSession();
    await session.reportMessage({ role: 'user', text: 'begin' });
    await settled(client);
    await handOut(session);
    await client.closeSession(before);
    const again = await client.openSession({ id: before.id });
    const { txId = 0 } = (await handOut(session)).record.basis ?? {};
    for (let i = 0; i < 70; i++) {
      await writeFile(join(root, 'a.ts'), `// a.ts, ${i}\n`);
      await reads(client, i % 2 === 0 ? session : again, 'a.ts');
    }
    await settled(client);
    let [{ record, text }, tries] = [await handOut(session), 0];
    // Assembling does not wait for the read that advances its basis.
    for (; (record.basis?.txId ?? 0) <= txId + 70 && tries < 100; tries++) ({ record, text } = await handOut(session));
    expect(record.basis?.txId).toBeGreaterThan(txId + 70);
    expect(record.ahead).toEqual([]);
    expect(text).toContain('// a.ts, 69');
    await settled(client);
    expect((await madeAgain(session.id)).at(-1)).toBe(text);
  });

  test('loses nothing if two chats record a call of the same id at once: one continues from its state', async () => {
    const proxy = await LateAnswers.open(root, node.address);
    const { address } = proxy;
    const agents = await Promise.all(
      ['one', 'other'].map((name) => open({ address, dataDir: join(root, name), track: false })),
    );
    const sessions = await Promise.all(agents.map((client) => client.openSession()));
    for (const session of sessions) await session.reportMessage({ role: 'user', text: 'begin' });
    await Promise.all(agents.map(settled));
    for (const session of sessions) await handOut(session);
    await Promise.all(agents.map(settled));
    const callId = `call_0-${process.pid}`;
    const release = proxy.holdWrites();
    const said = await Promise.all(
      sessions.map((session) => session.recordCall(call({ callId, content: `of ${session.id}` }))),
    );
    const shown = await Promise.all(sessions.map(handOut));
    release();
    expect(said.map((one) => one.callId)).toEqual([callId, callId]);
    await Promise.all(agents.map(settled));
    await Promise.allSettled(said.map(({ applied }) => applied));
    const lost = sessions.filter(({ isLost }) => isLost);
    expect(lost).toHaveLength(1);
    const [at] = lost.map((session) => sessions.indexOf(session)) as [number];
    const again = await (agents[at] as ContextClient).openSession({ id: (lost[0] as ContextSession).id });
    expect((await again.recordCall(call({ callId }))).callId).toBe(`${callId}@${again.id}`);
    await again.reportMessage({ role: 'assistant', text: 'goes on' });
    await settled(agents[at] as ContextClient);
    expect(again.isLost).toBe(false);
    const reader = await open({ track: false });
    const fork = (await reader.listSessions()).find(({ parent }) => parent?.session === again.id);
    expect((await madeAgain(fork?.id as SessionId)).at(-1)).toBe(shown[at]?.text);
    expect(await agents[at]?.close()).toEqual({ unflushed: 0 });
    await Promise.all(agents.map((client) => client.close()));
    await proxy.close();
  });

  test('may see a future-dated version of another clock that a context from the database does not', async () => {
    const first = await open({ track: false });
    const session = await first.openSession();
    await writeFile(join(root, 'f.ts'), 'first text');
    await session.recordCall(call({ readings: [await wholeRead(first, 'f.ts')] }));
    await session.assemble({ optimistic: true });
    const ahead = await open({ track: false, clock: () => Date.now() + 3_600_000 });
    await writeFile(join(root, 'f.ts'), 'the second text, which is longer');
    const later = new Date(Date.now() + 1_800_000);
    await utimes(join(root, 'f.ts'), later, later);
    const foreign = await ahead.openSession();
    await foreign.recordCall(call({ readings: [await wholeRead(ahead, 'f.ts')] }));
    const fromDatabase = await session.assemble();
    // Assembling does not wait for this read. It has arrived once the optimistic context shows it.
    await until(
      async () => (await session.assemble({ optimistic: true })).text,
      (text) => text.includes('the second text'),
    );
    const { text, record } = await session.assemble();
    const { validTime, txId } = record.basis ?? {};
    if (validTime === undefined || txId === undefined) throw new Error('away');
    expect(fromDatabase.text).toContain('char_count=10');
    expect(text).toBe((await first.contextAsOf(session.id, { validTime, txId }))?.text);
  });

  const operation = fc.record({
    kind: fc.constantFrom(
      'read',
      'read',
      'read',
      'theirs',
      'theirs',
      'gone',
      'mention',
      'said',
      'prompt',
      'pin',
      'hand',
      'hand',
      'hand',
    ),
    file: fc.constantFrom(...FILES),
    waits: fc.boolean(),
  });

  test('is rebuilt byte for byte after any concurrent writes to the same files', async () => {
    let ahead = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { minLength: 8, maxLength: 30 }), async (operations) => {
        const [client, other] = [await agent(), await open({ track: false })];
        const [session, theirs] = [await client.openSession(), await other.openSession()];
        const handed: string[] = [];
        const under: Promise<unknown>[] = [];
        let number = 0;
        const moves: Readonly<Record<(typeof operations)[number]['kind'], (file: string) => Promise<unknown>>> = {
          read: async (file) => {
            await writeFile(join(root, file), `// ${file}, ours ${number}\n`);
            await reads(client, session, file);
          },
          theirs: async (file) => {
            if (number % 2 === 0) await writeFile(join(root, file), `// ${file}, theirs ${number}\n`);
            await reads(other, theirs, file);
          },
          gone: async (file) => {
            await rm(join(root, file), { force: true });
            await reads(number % 2 === 0 ? client : other, number % 2 === 0 ? session : theirs, file);
          },
          mention: async (file) => {
            await writeFile(join(root, file), `// ${file}, listed\n`, { flag: 'a' });
            return session.recordCall(call({ tool: 'ls', mentions: await mentions(client, [file]) }));
          },
          said: () => session.reportMessage({ role: 'user', text: `message ${number}` }),
          prompt: () => session.setSystemPrompt(`prompt ${number}`),
          pin: async () => {
            const [id] = session.state.sets.index;
            if (id !== undefined)
              await session.recordCall(call({ tool: 'pin', plan: await session.planVerb('pin', [id]) }));
          },
          hand: async () => {
            const { text, record } = await handOut(session);
            if ((record.ahead ?? []).length > 0) ahead += 1;
            handed.push(text);
          },
        };
        for (const { kind, file, waits } of operations) {
          number += 1;
          const work = moves[kind](file);
          // Other calls continue while a context waits for the database.
          if (waits || (kind !== 'theirs' && kind !== 'hand')) await work;
          else under.push(work);
        }
        await Promise.all(under);
        await settled(client);
        const texts = await madeAgain(session.id);
        // The same context delivered again at one step is kept once.
        expect([...new Set(texts)].sort()).toEqual([...new Set(handed)].sort());
        await Promise.all(clients.splice(0).map((one) => one.close()));
      }),
      {
        endOnFailure: true,
        numRuns: Number(process.env.PALIMPSEST_AHEAD_RUNS ?? effort(6, 60)),
        ...(process.env.PALIMPSEST_SEED === undefined ? {} : { seed: Number(process.env.PALIMPSEST_SEED) }),
      },
    );
    expect(ahead).toBeGreaterThan(0);
  });
});
