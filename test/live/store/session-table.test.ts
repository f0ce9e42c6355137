import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { listSessions } from '../../../src/client/session/open-session.js';
import { sessionTableFile } from '../../../src/node/session-table-file.js';
import { chatObjectId, sessionId, sessionObjectId } from '../../../src/objects/ids.js';
import { ARRIVING, importId } from '../../../src/store/import-parts.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import type { SessionFile } from '../../../src/store/session-table.js';
import type { StoredSession } from '../../../src/store/snapshot-rows.js';
import type { StoreSnapshot } from '../../../src/store/store-snapshot.js';
import type { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { countRequests, openClient } from '../../support/context.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { executeForeignOn, openTestClient, uniquePrefix } from '../../support/xtdb.js';

/** A file in memory. */
class MadeFile implements SessionFile {
  text: string | undefined;
  writes = 0;

  async read(): Promise<string | undefined> {
    return this.text;
  }

  async write(text: string): Promise<void> {
    this.writes += 1;
    this.text = text;
  }
}

const p = uniquePrefix().slice(0, 12);
const byId = (sessions: readonly StoredSession[]) =>
  sessions.map(({ running: _, ...session }) => session).sort((a, b) => (a.id < b.id ? -1 : 1));

/** Something that changes the list of sessions, for the session of a number. */
const happening = fc.record({
  kind: fc.constantFrom(
    'open',
    'turn',
    'call',
    'call',
    'fork',
    'close',
    'evict',
    'arrives',
    'arrived',
    'other-process',
  ),
  of: fc.nat({ max: 5 }),
});
type Happening = typeof happening extends fc.Arbitrary<infer T> ? T : never;

// On the shared node, other suites write sessions meanwhile.
describe('the table of sessions', () => {
  let node: OwnNode;
  let xtdb: XtdbClient;
  let plain: ObjectStore;
  let folder: string;
  let client: ContextClient;
  let runs = 0;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'palimpsest-table-'));
    node = await ownNode();
    xtdb = openTestClient({}, node.address);
    plain = new ObjectStore(xtdb);
    client = await openClient(folder, { address: node.address });
    // If most sessions are new, the whole table is read.
    for (const n of [1, 2, 3]) await client.closeSession(await client.openSession({ id: `${p}first-${n}` }));
  });
  afterAll(async () => {
    await client?.close();
    await xtdb?.close();
    await node?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  const tabled = (sessionFile: SessionFile): ObjectStore => new ObjectStore(xtdb, { sessionFile });

  async function expectEqual(fast: StoreSnapshot, txId: number): Promise<void> {
    const slow = plain.newestAt(txId);
    expect(byId(await fast.sessions({ roots: true }))).toEqual(byId(await slow.sessions({ roots: true })));
    expect(await listSessions(fast, [])).toEqual(await listSessions(slow, []));
  }

  const latest = async (): Promise<number> => {
    await client.store.writes.flush();
    return (await plain.latest()).basis.txId ?? -1;
  };

  test('equals the whole answer after random changes, at the present and at earlier transactions', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { minLength: 4, maxLength: 10 }), fc.nat(), async (happenings, back) => {
        runs += 1;
        const file = new MadeFile();
        let store = tabled(file);
        const open = new Map<number, ContextSession>();
        const name = (of: number, more = ''): string => `${p}${runs}-${of}${more}`;
        const importState = async (of: number, type: string): Promise<unknown> =>
          xtdb.execute([{ op: 'put', doc: { 'xt/id': importId(sessionId(name(of))), type, text: '{}' } }]);
        const opened = async (of: number): Promise<ContextSession> => {
          const known = open.get(of);
          if (known !== undefined) return known;
          // A session that is being imported cannot be opened.
          await importState(of, 'import');
          const session = await client.openSession({ id: name(of) });
          open.set(of, session);
          return session;
        };
        const act: Readonly<Record<Happening['kind'], (of: number) => Promise<unknown>>> = {
          open: opened,
          turn: async (of) => (await opened(of)).reportMessage({ role: 'user', text: `turn of ${of}` }),
          call: async (of) => {
            const done = { args: { of }, status: 'ok', content: 'done', answer: () => 'done' } as const;
            await (await opened(of)).recordCall({ tool: 'bash', ...done });
          },
          fork: async (of) => {
            await opened(of);
            await importState(of, 'import');
            await client.store.writes.flush();
            await client.makeFork(name(of), { id: name(of, `-fork-${Math.random().toString(36).slice(2)}`) });
          },
          close: async (of) => {
            const session = open.get(of);
            open.delete(of);
            if (session !== undefined) await client.closeSession(session);
          },
          evict: async (of) => {
            const gone = name(of, '-gone');
            const session = await client.openSession({ id: gone });
            await client.closeSession(session);
            await latest();
            await store.newestAt(await latest()).sessions();
            await executeForeignOn(
              node.address,
              'evict',
              of % 2 === 0 ? sessionObjectId(sessionId(gone)) : chatObjectId(sessionId(gone)),
            );
          },
          arrives: (of) => importState(of, ARRIVING),
          arrived: (of) => importState(of, 'import'),
          'other-process': async () => {
            store = tabled(file);
          },
        };
        const asked: number[] = [];
        for (const { kind, of } of happenings) {
          await act[kind](of);
          const txId = await latest();
          asked.push(txId);
          await expectEqual(store.newestAt(txId), txId);
        }
        const earlier = asked[back % asked.length] ?? 0;
        await expectEqual(store.newestAt(earlier), earlier);
        const last = asked.at(-1) ?? 0;
        await expectEqual(store.newestAt(last), last);
        for (const session of open.values()) await client.closeSession(session);
      }),
      { numRuns: 4 },
    );
  });

  test('reads nothing of sessions that were not written since', async () => {
    const session = await client.openSession({ id: `${p}asked` });
    const file = new MadeFile();
    await tabled(file)
      .newestAt(await latest())
      .sessions();
    expect(file.writes).toBe(1);
    const txId = await latest();
    const again = await countRequests(() => tabled(file).newestAt(txId).sessions());
    expect([...again.queries].filter((query) => query.includes(':turn_count'))).toEqual([]);
    expect([...again.queries].some((query) => query.includes('"session"'))).toBe(false);
    await session.reportMessage({ role: 'user', text: 'again' });
    const later = await latest();
    const store = tabled(file);
    const changed = await countRequests(() => store.newestAt(later).sessions());
    const read = [...changed.queries].filter((query) => query.includes(':turn_count'));
    expect(read.map((query) => query.includes(sessionObjectId(session.id)))).toEqual([true]);
    await expectEqual(store.newestAt(later), later);
    await client.closeSession(session);
  });

  test.each([
    ['is cut', (text: string) => text.slice(0, -20)],
    ['is of another version', (text: string) => text.replace('"version":1', '"version":0')],
    ['has a wrong row', (text: string) => text.replace(/"rows":\[\["/, '"rows":[[3,"')],
    ['is of another database', (text: string) => text.replace(/"mark":\[(\d+),(\d+)/, '"mark":[$1,1$2')],
    ['covers a transaction that this database does not have', (text: string) => text.replace(/"mark":\[/, '"mark":[9')],
  ])('is made again if its file %s', async (_what, change) => {
    const file = new MadeFile();
    const txId = await latest();
    await tabled(file).newestAt(txId).sessions();
    const kept = file.text ?? '';
    // An additional session, which the database does not have.
    const { rows, ...table } = JSON.parse(kept) as { readonly rows: readonly (readonly unknown[])[] };
    file.text = change(JSON.stringify({ ...table, rows: [[`${p}nowhere`, ...(rows[0] ?? []).slice(1)], ...rows] }));
    expect(file.text).not.toBe(kept);
    await expectEqual(tabled(file).newestAt(txId), txId);
    expect(file.text).toBe(kept);
  });

  test('is read whole at another valid time, and without a file', async () => {
    const txId = await latest();
    const file = new MadeFile();
    const past = await tabled(file).asOf({ validTime: new Date(1_000), txId });
    expect(await past.sessions()).toEqual([]);
    expect(file.text).toBeUndefined();
  });
});

describe('the file of the table', () => {
  test('is not written, or is removed, while an erasure may remove sessions', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'palimpsest-table-'));
    try {
      const file = sessionTableFile(folder);
      expect(await file?.read()).toBeUndefined();
      await file?.write('one');
      expect(await file?.read()).toBe('one');
      const { mkdir, writeFile } = await import('node:fs/promises');
      await mkdir(join(folder, 'erasures'));
      await writeFile(join(folder, 'erasures', 'pending.json'), '{}');
      await file?.write('two');
      expect(await file?.read()).toBe('one');
      await rm(join(folder, 'erasures', 'pending.json'));
      await file?.read();
      await file?.write('three');
      expect(await file?.read()).toBe('three');
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});
