import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { EdnMap, EdnTagged, kw } from '../../../src/edn/values.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { askSearch, type SearchAnswer } from '../../../src/history/search/search.js';
import { SearchIndex } from '../../../src/history/search/search-index.js';
import { textPattern } from '../../../src/history/search/text-pattern.js';
import { openClient, wholeRead } from '../../support/context.js';
import { type Agent, stdioAgent, temporaryRoot } from '../../support/mcp-clients.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { executeForeignOn, uniquePrefix } from '../../support/xtdb.js';

/** A text that this test wrote, and the transaction after which the database has it. */
interface Written {
  readonly session: string;
  readonly text: string;
  readonly txId: number;
}

const WORDS = ['Alpha', 'beta', 'gamma', 'x.y', 'naïve', '0x1f', 'end'];

/** A search for one letter finds it too. */
const PROMPT = 'Only the second session is careful.';

/** Returns a text of some words that differs for each number. */
const textOf = (number: number): string =>
  Array.from({ length: 12 }, (_, i) => WORDS[(number * (i + 3) + i * i) % WORDS.length])
    .join(number % 3 === 0 ? '\n' : ' ')
    .concat(` #${number}`);

describe('a search', () => {
  const prefix = uniquePrefix();
  const written: Written[] = [];
  let node: OwnNode;
  let root: string;
  let remove: () => Promise<void>;
  let client: ContextClient;
  let sessions: readonly ContextSession[];
  let fork: ContextSession;
  let index: SearchIndex;

  const keep = async (session: ContextSession, text: string): Promise<void> => {
    const { txId = 0 } = (await client.snapshot()).basis;
    written.push({ session: session.id, text, txId });
  };

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    // The index reads the whole log, and other suites write damaged transactions into theirs.
    node = await ownNode();
    client = await openClient(root, { address: node.address });
    index = new SearchIndex(join(root, 'index'));
    sessions = await Promise.all(['a', 'b'].map((name) => client.openSession({ id: `${prefix}-${name}` })));
    for (let number = 0; number < 12; number += 1) {
      const session = sessions[number % 2] as ContextSession;
      const text = textOf(number);
      if (number % 4 < 2) {
        await session.reportMessage({ role: 'user', text });
        await keep(session, text);
        continue;
      }
      const file = `${session.id}.txt`;
      // A text of several chunks. The content of its version omits the middle.
      const whole = number === 6 ? `${'-\n'.repeat(700_000)}${text}\n${'=\n'.repeat(100_000)}` : text;
      await writeFile(join(root, file), whole);
      const reading = await wholeRead(client, file);
      const { applied } = await session.recordCall({
        tool: 'read',
        args: { path: file },
        status: 'ok',
        content: 'read',
        readings: [reading],
        answer: () => 'read',
      });
      await applied;
      await keep(session, whole);
    }
    const careful = sessions[1] as ContextSession;
    await careful.setSystemPrompt(PROMPT);
    await keep(careful, PROMPT);
    await sessions[0]?.assemble({ deliver: 'library' });
    // A fork shares the steps before it.
    fork = await client.forkSession((sessions[0] as ContextSession).id, { id: `${prefix}-c` });
  });
  afterAll(async () => {
    await client?.close();
    await node?.stop();
    await remove();
  });

  const visible: NonNullable<Parameters<typeof askSearch>[1]['visible']> = async (all) =>
    all.filter((id) => sessions.some((one) => one.id === id));

  /** Searches with the index, and expects the same hits as from a plain scan. */
  const search = async (asked: Parameters<typeof askSearch>[1]): Promise<SearchAnswer> => {
    const store = await client.delivered();
    const timeline = await Timeline.open(store);
    let failure: string | undefined;
    const ready = await index.upTo(store, {
      upto: timeline.present.basis.txId ?? -1,
      onFailure: (reason) => {
        failure = reason;
      },
    });
    expect(failure).toBeUndefined();
    const indexed = await askSearch(timeline, asked, ready);
    const plain = await askSearch(timeline, asked);
    expect(ready).toBeDefined();
    const isLong = textPattern(asked.pattern).required.some((text) => text.length > 2);
    expect([indexed.isIndexed, indexed.isCut, indexed.hits]).toEqual([isLong, plain.isCut, plain.hits]);
    return indexed;
  };

  /** Returns the number of matches in each text of this test that has any. */
  const scanned = (isWanted: (one: Written) => boolean, find: (text: string) => number): readonly number[] =>
    written
      .filter(isWanted)
      .map(({ text }) => find(text))
      .filter((count) => count > 0)
      .sort((a, b) => a - b);

  test('finds the same as a plain scan, for any text, expression and basis', async () => {
    const part = fc
      .tuple(fc.nat({ max: 11 }), fc.nat({ max: 60 }), fc.integer({ min: 1, max: 12 }))
      .map(([number, from, length]) => textOf(number).slice(from, from + length))
      .filter((text) => text.trim() !== '' && !text.startsWith('/'));
    const moment = fc.option(fc.nat({ max: 11 }), { nil: undefined });
    const scope = fc.record({ isAll: fc.boolean(), limit: fc.integer({ min: 1, max: 6 }) });
    await fc.assert(
      fc.asyncProperty(part, fc.boolean(), moment, scope, async (wanted, isExpression, at, { isAll, limit }) => {
        const escaped = wanted.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
        const session = isAll ? undefined : sessions[0]?.id;
        const tx = at === undefined ? undefined : written[at]?.txId;
        const asked = {
          pattern: isExpression ? `/${escaped}/` : wanted,
          session,
          tx: tx === undefined ? undefined : String(tx),
          // Texts of other tests are in the same database.
          ...(isAll ? { visible } : {}),
        };
        const { hits, isCut } = await search({ ...asked, limit: 1_000 });
        const few = await search({ ...asked, limit });
        expect([few.isCut, few.hits]).toEqual([hits.length > limit, hits.slice(0, limit)]);
        const anyCase = !isExpression && wanted === wanted.toLowerCase();
        const expression = new RegExp(escaped, anyCase ? 'gi' : 'g');
        const isWanted = (one: Written): boolean =>
          (session === undefined || one.session === session) && (tx === undefined || one.txId <= tx);
        const found = hits.filter(({ kind }) => kind !== 'toolcall').map(({ count }) => count);
        expect([isCut, found.sort((a, b) => a - b)]).toEqual([
          false,
          scanned(isWanted, (text) => text.match(expression)?.length ?? 0),
        ]);
      }),
      { numRuns: 40 },
    );
  });

  test('lists the oldest hits first on request, also with a limit', async () => {
    const newest = await search({ pattern: 'end', visible, limit: 1_000 });
    const first = await search({ pattern: 'end', visible, limit: 3, order: 'first' });
    const placeOf = ({ session, at, object }: SearchAnswer['hits'][number]) => [session, at, object];
    expect([first.isCut, first.hits.map(placeOf)]).toEqual([true, newest.hits.toReversed().slice(0, 3).map(placeOf)]);
    expect(newest.hits.length).toBeGreaterThan(3);
  });

  test('reports both clocks, and which contexts had the text whole or only as a line', async () => {
    const [first] = sessions;
    const { hits } = await search({ pattern: '#4', session: first?.id });
    expect(hits).toMatchObject([{ kind: 'message', name: 'user', at: expect.any(Date), txId: expect.any(Number) }]);
    expect(hits[0]?.whole).toHaveLength(1);
    const files = await search({ pattern: '/#(2|10)$/', session: first?.id, kind: 'file' });
    expect(files.hits.map(({ whole, asLine, version }) => [whole.length, asLine.length, version?.number])).toEqual([
      [1, 0, 3],
      [0, 0, 1],
    ]);
    expect(files.hits[0]?.version?.txId).toBeLessThan(hits[0] === undefined ? 0 : Number.POSITIVE_INFINITY);
  });

  test('filters by kind and path, and finds calls by their arguments', async () => {
    const [first] = sessions;
    const call = await search({ pattern: `path: ${first?.id}.txt`, session: first?.id });
    expect(call.hits.map(({ kind, part }) => [kind, part])).toEqual(Array(3).fill(['toolcall', 'arguments']));
    const other = await search({ pattern: 'end', session: first?.id, path: `${sessions[1]?.id}.txt` });
    expect(other.hits).toEqual([]);
    const own = await search({ pattern: 'end', session: first?.id, path: '*.txt' });
    expect(new Set(own.hits.map(({ kind }) => kind))).toEqual(new Set(['file']));
  });

  test('stays in its session, also for system prompts', async () => {
    const foundIn = async (session: string | undefined) =>
      (await search({ pattern: 'second session is careful', session })).hits.map(({ kind }) => kind);
    expect(await foundIn(sessions[0]?.id)).toEqual([]);
    expect(await foundIn(sessions[1]?.id)).toEqual(['system_prompt']);
  });

  test('finds the messages that a fork shares with its parent', async () => {
    const { hits } = await search({ pattern: textOf(4).slice(-8), session: fork.id });
    expect(hits).toMatchObject([{ kind: 'message', session: fork.id }]);
  });

  test('uses the index if the last transaction of the database was aborted', async () => {
    const store = await client.delivered();
    const absent = new Map([[`${prefix}-absent`, { 'xt/id': `${prefix}-absent` }]]);
    expect((await store.putMany([], absent)).result).toBe(false);
    expect((await search({ pattern: 'Alpha', session: fork.id })).isIndexed).toBe(true);
  });

  test('uses the index although another program writes values that Palimpsest cannot read', async () => {
    const uuid = new EdnTagged('uuid', '531a379e-31bb-4ce1-8690-158dceb64be6');
    await executeForeignOn(node.address, 'put', new EdnMap([kw('xt/id'), uuid, kw('name'), 'Alpha of another']));
    const [first] = sessions;
    await first?.reportMessage({ role: 'user', text: 'Written after the other program' });
    await keep(first as ContextSession, 'Written after the other program');
    const { hits, isIndexed } = await search({ pattern: 'after the other program', session: first?.id });
    expect([isIndexed, hits.length]).toEqual([true, 1]);
    expect((await search({ pattern: 'Alpha of another', limit: 5 })).hits).toEqual([]);
  });

  test('is refused if it matches every text, or names an unknown session, or a turn without a session', async () => {
    await expect(search({ pattern: '/.*/' })).rejects.toMatchObject({ code: 'malformed-pattern' });
    await expect(search({ pattern: 'x', session: `${prefix}-none` })).rejects.toMatchObject({
      code: 'unknown-session',
    });
    await expect(search({ pattern: 'x', at: 'turn:1' })).rejects.toMatchObject({ code: 'which-session' });
  });
});

describe('recall', () => {
  let root: string;
  let remove: () => Promise<void>;
  let agent: Agent;

  beforeAll(async () => {
    ({ root, remove } = await temporaryRoot());
    await writeFile(join(root, 'cart.ts'), 'const sum = 1;\nconst total = ceil(sum);\n');
    agent = await stdioAgent(root);
  });
  afterAll(async () => {
    await agent.close();
    await remove();
  });

  test('finds an old version of a file, and returns an id that activate takes', async () => {
    await agent.call('read', { path: 'cart.ts' });
    await agent.call('edit', { path: 'cart.ts', edits: [{ oldText: 'ceil', newText: 'round' }] });
    await agent.call('deactivate', { ids: ['cart.ts'] });
    const before = (await agent.call('context')).text;
    const found = await agent.call('recall', { text: '/= ceil.sum/' });
    expect(found.text).toMatch(
      /^\[recall texts=\d+ found=2\]\n[\s\S]*\n\[file id=\w{8,12} path=\S+cart\.ts version=1 from=\S+ matches=1\]\n/,
    );
    expect(found.text).toContain('  1-const sum = 1;\n  2:const total = ceil(sum);');
    expect((await agent.call('context')).text.replace(/turn=\d+|known=\d+|recall.*/g, '')).toContain('cart.ts');
    expect(before).toContain('cart.ts');
    const id = /file id=(\S+)/.exec(found.text)?.[1] ?? '';
    expect((await agent.call('activate', { ids: [id] })).isError).toBe(false);
    // A search does not find earlier searches.
    expect((await agent.call('recall', { text: 'ceil.sum' })).text).not.toContain('tool=recall');
  });

  test('refuses an expression that the engine cannot run, and explains why to the agent', async () => {
    const refused = await agent.call('recall', { text: '/(a)\\1/' });
    expect([refused.isError, refused.text]).toEqual([true, expect.stringContaining('have no look-around')]);
  });
});
