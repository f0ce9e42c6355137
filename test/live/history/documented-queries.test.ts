import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { assemble } from '../../../src/assembly/assemble.js';
import { fileObjectId } from '../../../src/client/file-access.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { ContextReader } from '../../../src/history/rebuild/context-reader.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { hashText } from '../../../src/objects/hashes.js';
import { canonicalPath, filesystemId, type SessionId } from '../../../src/objects/ids.js';
import { filesystemSource } from '../../../src/objects/source.js';
import { deletedFile } from '../../../src/objects/versions.js';
import { askContext, askQuery } from '../../../src/review/ask/ask.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { countRequests, openClient, wholeRead } from '../../support/context.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';

const LISTED = 2_000;
const CALLS = 1_000;
/**
 * Time limit of a query in this test, where every core is busy. The benchmark limits each example
 * to 300 ms.
 */
const LIMIT_MS = 5_000;

const examples = [...readFileSync('docs/review.md', 'utf8').matchAll(/^\| `:[^`]+` \| [^|]+ \| `(.+)` \|$/gm)].map(
  ([, query = '']) => query,
);

describe('a session of 1,000 calls with a listing of 2,000 files', () => {
  let node: OwnNode;
  let root: string;
  let client: Awaited<ReturnType<typeof openClient>>;
  let session: ContextSession;

  beforeAll(async () => {
    node = await ownNode();
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-documented-')));
    const filesystem = filesystemId('documented');
    client = await openClient(root, { address: node.address, filesystemId: filesystem });
    await writeFile(join(root, 'read.ts'), 'const x = 1;\n');
    session = await client.openSession({ id: 'S' });
    await session.setSystemPrompt('You are careful.');
    await session.reportMessage({ role: 'user', text: 'Look' });
    const listed = Array.from({ length: LISTED }, (_, n) => ({
      source: filesystemSource(filesystem, canonicalPath(join(root, `file-${n}.ts`))),
      mtimeMs: 1_700_000_000_000,
    }));
    const readings = [await wholeRead(client, 'read.ts')];
    // Call ids that sort among those of files, as in some harnesses.
    for (let n = 0; n < CALLS; n += 1) {
      const found =
        n === 501 ? { tool: 'ls', mentions: listed } : { tool: 'read', readings: n % 2 === 0 ? readings : [] };
      await session.recordCall({
        callId: hashText(`${n}`),
        args: { path: `${n}` },
        status: 'ok',
        content: `answer ${n}`,
        answer: () => '',
        ...found,
      });
    }
    await client.store.writes.flush();
  });
  afterAll(async () => {
    await client?.close();
    await node?.stop();
    await rm(root, { recursive: true, force: true });
  });

  test('is verified without a query for each file that it knows only by name', async () => {
    const present = await client.store.latest();
    const { result, sent } = await countRequests(() => verifySession(client.store, 'S', { present }));
    expect(result).toMatchObject({ ok: true, answers: { total: CALLS } });
    // Room for the ids of the calls, twice, and of their steps.
    expect(sent).toBeLessThan(CALLS * 300);
  });

  test('has the same context in the database as in its client', async () => {
    const { text } = await askContext(await Timeline.open(await client.delivered(), client.files), 'S', {
      assemble: true,
    });
    const { text: expected } = await session.assemble();
    expect(text).toBe(expected);
    expect(text).toContain(`path=${join(root, 'file-1999.ts')} file_type=ts [unread]`);
  });

  test('does not count a deleted file among its many stubs', async () => {
    const source = filesystemSource(filesystemId('documented'), canonicalPath(join(root, 'file-7.ts')));
    const id = fileObjectId(source);
    await client.store.putMany([{ version: deletedFile(source), marks: { gone: true } }]);
    const found = await (await client.store.latest()).sourcesOf([id, 'chat:S']);
    expect([...found]).toEqual([[id, { source, isStub: false }]]);
    const { text } = await askContext(await Timeline.open(client.store, client.files), 'S', { assemble: true });
    expect(text).toContain(`path=${join(root, 'file-7.ts')} file_type=ts [deleted]`);
  });

  test.each([
    ['few objects, one by one', 2],
    ['many objects, from the few files that were read', Number.POSITIVE_INFINITY],
  ])('distinguishes read files from stubs among %s', async (_how, most) => {
    const idOf = (name: string) =>
      fileObjectId(filesystemSource(filesystemId('documented'), canonicalPath(join(root, name))));
    const asked = [...new Set([idOf('read.ts'), idOf('file-9.ts'), ...session.state.sets.index])].slice(0, most);
    const result = await (await client.store.latest()).sourcesOf(asked);
    expect([result.get(idOf('read.ts'))?.isStub, result.get(idOf('file-9.ts'))?.isStub]).toEqual([false, true]);
    expect([...result.values()].filter(({ isStub }) => !isStub).length).toBeLessThanOrEqual(2);
  });

  /** Returns the largest number of requests for many heads that were open at a time. */
  const mostAtOnce = async (work: () => Promise<void>): Promise<number> => {
    const open = new Set<unknown>();
    let most = 0;
    const begin = (message: unknown): void => {
      const { request } = message as { readonly request: { readonly body?: unknown } };
      const body = String(request.body);
      if (body.length > 100 * 64 && body.includes('get-start-valid-time')) open.add(request);
      most = Math.max(most, open.size);
    };
    const end = (message: unknown): void => {
      open.delete((message as { readonly request: unknown }).request);
    };
    subscribe('undici:request:create', begin);
    subscribe('undici:request:trailers', end);
    try {
      await work();
    } finally {
      unsubscribe('undici:request:create', begin);
      unsubscribe('undici:request:trailers', end);
    }
    return most;
  };

  test('queries many objects a few at a time, so that none reaches its limit', async () => {
    const most = await mostAtOnce(async () => {
      const { index } = session.state.sets;
      expect((await (await client.store.latest()).heads(index)).size).toBe(index.length);
    });
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(3);
  });

  const rowsOf = async (query: string, limit?: number): Promise<number> => {
    const timeline = await Timeline.open(await client.delivered());
    return (await askQuery(timeline, query, { timeoutMs: LIMIT_MS, limit })).answer.rows.length;
  };

  test.each(examples)('answers the documented query %s in time', async (query) => {
    await expect(rowsOf(query)).resolves.toBeGreaterThanOrEqual(0);
  });

  test.each([
    ['[:find ?e ?f :where [?e :file_refs ?f] [?f :type "file"]]', LISTED + CALLS / 2],
    ['[:find ?f ?id ?e :where [?f :xt/id ?id] [?e :file_refs ?f]]', LISTED + CALLS / 2],
    ['[:find ?e ?f :where [?f :file_type "ts"] [?e :tool "ls"] [?e :file_refs ?f]]', LISTED],
    ['[:find ?e ?f ?p :where [?e :file_refs ?f] [?f :source ?s] [(get ?s "path") ?p]]', LISTED + CALLS / 2],
    ['[:find ?e ?o :where [?s :session_index ?o] [?e :file_refs ?o]]', LISTED + CALLS / 2],
    ['[:find ?a ?b ?f :where [?a :tool "ls"] [?a :file_refs ?f] [?b :file_refs ?f]]', LISTED],
  ])('has every row of %s', async (query, rows) => {
    expect(await rowsOf(query, 100_000)).toBe(rows);
  });

  // Runs after all queries, because it adds a session.
  test('takes the paths of unread files from the outputs that list them, and reads the others', async () => {
    const filesystem = filesystemId('documented');
    const names = Array.from({ length: 500 }, (_, n) => `${n % 7 === 0 ? 'more/' : ''}näme ${n}.md`);
    const lists: readonly (readonly [string, (name: string) => string])[] = [
      ['listed', (name) => name],
      ['found', (name) => `./found/${name}`],
      ['absolute', (name) => join(root, 'absolute', name)],
      ['hidden', (name) => `${name} 4 kB`],
    ];
    const other = await client.openSession({ id: 'L' });
    for (const [folder, line] of lists)
      await other.recordCall({
        tool: 'ls',
        args: { folder },
        status: 'ok',
        content: [...names.map(line), '', 'foreign.md', '[and 3 more]'].join('\n'),
        answer: () => '',
        mentions: names.map((name) => ({
          source: filesystemSource(filesystem, canonicalPath(join(root, folder, name))),
          mtimeMs: 1_700_000_000_000,
        })),
      });
    const { text: expected } = await other.assemble();
    const present = await (await client.delivered()).latest();
    const question = { session: 'L' as SessionId, paths: client.files };
    const read = async (usesListings: boolean) => {
      const asked = await countRequests(() => new ContextReader({ usesListings }).read(present, question));
      const { input } = asked.result ?? {};
      if (input === undefined) throw new Error('the session is missing');
      return { sent: asked.sent, text: assemble({ ...input, options: { strict: false, shortIds: false } }).text };
    };
    const [fast, whole] = [await read(true), await read(false)];
    expect([fast.text, whole.text]).toEqual([expected, expected]);
    expect(expected).toContain(`path="${join(root, 'found/more/näme 7.md')}" file_type=md [unread]`);
    // An id takes 67 characters. Only the ids of `hidden` are sent.
    expect(fast.sent).toBeLessThan(600 * 67);
    expect(whole.sent).toBeGreaterThan(2_000 * 67);
  });

  // Runs last, because it takes the session over.
  test('is opened again with a few queries at a time', async () => {
    const { index } = session.state.sets;
    const other = await openClient(root, { address: node.address, filesystemId: filesystemId('documented') });
    try {
      const most = await mostAtOnce(async () => {
        const opened = await other.openSession({ id: 'S', takeOver: true });
        expect(opened.state.sets.index).toEqual(index);
      });
      expect(most).toBeGreaterThan(1);
      expect(most).toBeLessThanOrEqual(3);
    } finally {
      await other.close();
    }
  });
});
