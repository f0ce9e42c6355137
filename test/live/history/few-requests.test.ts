import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { TyrumReports } from '../../../src/contracts/tyrum/read-reports.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { askSearch } from '../../../src/history/search/search.js';
import { SearchIndex } from '../../../src/history/search/search-index.js';
import type { AssemblyProof } from '../../../src/objects/assembly-proof.js';
import { askContext, askTurns } from '../../../src/review/ask/ask.js';
import { reportDetail, reportList } from '../../../src/review/ask/context-report.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import { countRequests, openClient } from '../../support/context.js';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { openTestClient } from '../../support/xtdb.js';

// A busy node refuses requests, and the client then sends them again. On the shared node, other
// suites would change the counts.
describe('the number of requests to the database', () => {
  let node: OwnNode;
  let folder: Awaited<ReturnType<typeof temporaryRoot>>;
  let client: ContextClient;

  beforeAll(async () => {
    node = await ownNode();
    folder = await temporaryRoot();
    client = await openClient(folder.root, { address: node.address });
  });
  afterAll(async () => {
    await client?.close();
    await node?.stop();
    await folder?.remove();
  });

  test('is a handful for a long session’s context and its log', async () => {
    const session = await client.openSession({ id: 'long' });
    for (let turn = 1; turn <= 40; turn++) {
      await session.reportMessage({ role: 'user', text: `turn ${turn}` });
      await session.assemble({ deliver: 'library' });
      await session.recordCall({
        tool: 'bash',
        args: { turn },
        status: 'ok',
        content: `output ${turn}`,
        answer: (id) => id,
      });
    }
    const store = await client.delivered();
    const asked = await countRequests(async () => askContext(await Timeline.open(store), `${session.id}@turn:20`, {}));
    expect(asked.result).toMatchObject({ source: 'record', matches: true, turn: 20 });
    const sum = Object.values(asked.requests).reduce((all, n) => all + n, 0);
    expect(sum).toBeLessThanOrEqual(12);
    const now = await Timeline.open(store);
    const { turns } = await askTurns(now, { session: session.id });
    const lookedUp = await Promise.all(
      turns.map(async ({ lastStep }) => (await now.present.stepTimes(session.id, [lastStep])).get(lastStep)),
    );
    expect(turns.map(({ known }) => known)).toEqual(lookedUp);
    expect(turns).toHaveLength(40);
    // The session's head, which names the owners of its steps, is read once. Of the records only
    // those that begin an epoch are read.
    const logged = await countRequests(async () => askTurns(await Timeline.open(store), { session: session.id }));
    expect(logged.result.turns).toEqual(turns);
    expect(logged.requests['/_xtdb/entity']).toBe(1);
    expect(Object.values(logged.requests).reduce((all, n) => all + n, 0)).toBeLessThanOrEqual(9);
  });

  test('is two for each session and turn in a log of the newest turns of all sessions', async () => {
    for (let n = 0; n < 12; n++) {
      const session = await client.openSession({ id: `newest-${n}` });
      await session.reportMessage({ role: 'user', text: `question ${n}` });
      await session.recordCall({ tool: 'bash', args: { n }, status: 'ok', content: `answer ${n}`, answer: (id) => id });
      await client.closeSession(session);
    }
    const store = await client.delivered();
    const { result, requests } = await countRequests(async () => askTurns(await Timeline.open(store), { limit: 10 }));
    expect(result.turns.map(({ session }) => session)).toEqual(
      Array.from({ length: 10 }, (_, n) => `newest-${11 - n}`),
    );
    const now = await Timeline.open(store);
    for (const turn of result.turns) expect([turn]).toEqual((await askTurns(now, { session: turn.session })).turns);
    // The steps of 16 sessions, the records of 10 turns, and the heads and calls of all together.
    expect(requests['/_xtdb/query']).toBeLessThanOrEqual(36);
    expect(requests['/_xtdb/entity-tx']).toBeLessThanOrEqual(11);
  });

  test('does not grow with short texts that the search index proposes and that do not match', async () => {
    const session = await client.openSession({ id: 'searched' });
    for (let turn = 1; turn <= 40; turn++) {
      await session.reportMessage({ role: 'user', text: `a given message ${turn}` });
      await session.recordCall({
        tool: 'bash',
        args: { turn },
        status: 'ok',
        content: `a given output ${turn}`,
        answer: (id) => id,
      });
    }
    const timeline = await Timeline.open(await client.delivered());
    const index = await new SearchIndex(join(folder.root, 'index')).of(timeline);
    const asked = await countRequests(() => askSearch(timeline, { pattern: '/given\\w*\\(/' }, index));
    expect(asked.result).toMatchObject({ isIndexed: true, hits: [], texts: 80 });
    expect(Object.values(asked.requests).reduce((all, n) => all + n, 0)).toBeLessThanOrEqual(4);
  });

  test('does not grow with the matches of a search beyond its limit', async () => {
    const session = await client.openSession({ id: 'matched' });
    for (let turn = 1; turn <= 60; turn++)
      await session.recordCall({
        tool: 'bash',
        args: { turn },
        status: 'ok',
        content: `a frequent output ${turn}`,
        answer: (id) => id,
      });
    const timeline = await Timeline.open(await client.delivered());
    const index = await new SearchIndex(join(folder.root, 'index')).of(timeline);
    const asked = await countRequests(() => askSearch(timeline, { pattern: 'a frequent output', limit: 5 }, index));
    expect(asked.result).toMatchObject({ isIndexed: true, isCut: true });
    expect(asked.result.hits).toHaveLength(5);
    // The history of each of the 60 calls would take a request.
    expect(asked.requests['/_xtdb/entity']).toBeLessThanOrEqual(20);
  });

  test('is small for a list of contexts, which equal each alone; the first failure is reported', async () => {
    const session = await client.openSession({ id: 'listed' });
    // More steps than one page holds.
    for (let turn = 1; turn <= 55; turn++) {
      await session.reportMessage({ role: 'user', text: `turn ${turn}` });
      if (turn > 30) await session.assemble({ deliver: 'library' });
      await session.recordCall({
        tool: 'bash',
        args: { turn },
        status: 'ok',
        content: `output ${turn} `.repeat(300),
        answer: (id) => id,
      });
    }
    await client.snapshot();
    const store = await client.delivered();
    const question = { reference: session.id, limit: 20, count: countHere };
    const { result, requests } = await countRequests(async () => reportList(await Timeline.open(store), question));
    // Reads all parts together.
    expect(Object.values(requests).reduce((all, n) => all + n, 0)).toBeLessThanOrEqual(12);
    expect(result.reported.map(({ context }) => context.turn)).toEqual(Array.from({ length: 20 }, (_, i) => 55 - i));
    // Also reads their other details together.
    const foreign = await countRequests(async () =>
      new TyrumReports(await Timeline.open(store), countHere).list({ conversation: session.id, limit: 20 }),
    );
    expect(foreign.result.map(({ turn }) => turn)).toEqual(
      Array.from({ length: 20 }, (_, i) => `${session.id}@turn:${55 - i}`),
    );
    expect(Object.values(foreign.requests).reduce((all, n) => all + n, 0)).toBeLessThanOrEqual(9);
    const now = await Timeline.open(store);
    for (const { context, ledger } of result.reported) {
      const alone = await reportDetail(now, {
        reference: `${session.id}@turn:${context.turn}`,
        text: {},
        count: countHere,
      });
      expect([context.text, context.matches, ledger]).toEqual([alone.context.text, true, alone.ledger]);
    }
    // A verification reads the bases of many contexts at a time, as far as the transaction log
    // proves their state.
    const xtdb = openTestClient({}, node.address);
    const verified = await countRequests(() => verifySession(new ObjectStore(xtdb), session.id)).finally(() =>
      xtdb.close(),
    );
    expect(verified.result).toMatchObject({ ok: true, contexts: { total: 25, equal: 25 } });
    expect(Object.values(verified.requests).reduce((all, n) => all + n, 0)).toBeLessThanOrEqual(20);
    const [good, ...others] = await now.records(session.id);
    const bad = others.slice(0, 9).map((proof, i) => (i % 3 === 2 ? { ...proof, version: 100 + i } : proof));
    const failed = now.rebuilder.rebuildEach([good as AssemblyProof, ...bad], ({ proof }) => proof.turn);
    await expect(failed).rejects.toThrow(/version 102/);
    expect(await now.rebuilder.rebuildEach([], () => 1)).toEqual([]);
  });
});
