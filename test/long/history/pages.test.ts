import { randomUUID } from 'node:crypto';
import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import type { ContextSession } from '../../../src/client/session/context-session.js';
import { kwMap } from '../../../src/edn/values.js';
import { AssemblyRebuilder } from '../../../src/history/rebuild/rebuild-assembly.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { SessionId } from '../../../src/objects/ids.js';
import type { Step } from '../../../src/objects/step.js';
import { askContext, askQuery } from '../../../src/review/ask/ask.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { withoutParent } from '../../../src/store/lineage.js';
import { pageId } from '../../../src/store/step-page.js';
import { stepId } from '../../../src/store/step-part.js';
import type { StoreSnapshot } from '../../../src/store/store-snapshot.js';
import { countRequests, openClient, wholeRead } from '../../support/context.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { executeForeign } from '../../support/xtdb.js';

/** Enough for two pages and some steps outside of a page. */
const STEPS = 230;

describe('a long session with pages of steps (decision 0015)', () => {
  let node: OwnNode;
  let root: string;
  let client: ContextClient;
  let session: ContextSession;

  const call = async (to: ContextSession, n: number): Promise<void> => {
    const path = join(root, `file-${n % 3}.ts`);
    if (n % 10 === 0) await writeFile(path, `version ${n}\n`);
    const readings = n % 10 === 0 ? [await wholeRead(client, path)] : [];
    await to.recordCall({
      tool: 'bash',
      args: { n },
      status: 'ok',
      content: `output ${n}`,
      readings,
      answer: (id) => id,
    });
  };
  const grow = async (to: ContextSession, steps: number): Promise<void> => {
    for (let n = to.state.seq; n < steps; n = to.state.seq) {
      await to.reportMessage({ role: 'user', text: n % 50 === 0 ? `${n} and much more `.repeat(200) : `turn ${n}` });
      if (n % 20 < 2) await to.assemble({ deliver: 'library' });
      await call(to, n);
    }
    await client.snapshot();
  };
  const present = async (): Promise<StoreSnapshot> => (await client.delivered()).latest();
  const missing = async (id: SessionId, upto = STEPS) => {
    const now = await present();
    return now.pages.missing((await now.lineage(id)) ?? withoutParent(id), upto);
  };
  const alone = (snapshot: StoreSnapshot, id: SessionId): Promise<readonly Step[]> => snapshot.steps(id, { first: 1 });
  const page = (id: SessionId, last: 100 | 200): string => pageId({ session: id, first: last - 99, last });

  beforeAll(async () => {
    // This test damages a page, and every query for the newest turns of all sessions would read it.
    node = await ownNode();
    process.env.PALIMPSEST_TEST_SOCKET = node.address.kind === 'unix' ? node.address.socketPath : undefined;
    root = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-pages-')));
    client = await openClient(root, { dataDir: join(root, 'data'), track: false });
    session = await client.openSession({ id: `paged-${randomUUID()}` });
    await grow(session, STEPS);
  });
  afterAll(async () => {
    await client.close();
    await node.stop();
    await rm(root, { recursive: true, force: true });
  });

  test('reads the same steps from them at every basis, with few requests per context', async () => {
    const { id } = session;
    expect(await missing(id)).toEqual([]);
    const now = await present();
    const steps = await alone(now, id);
    expect(await now.steps(id)).toEqual(steps);
    const times = await now.stepTimes(id, [1, 99, 100, 101, 230]);
    for (const [seq, { txId }] of times) {
      const before = now.earlier({ validTime: new Date((steps[seq - 1]?.at ?? 0) - 1), txId });
      const then = now.earlier({ validTime: new Date(steps[seq - 1]?.at ?? 0), txId });
      for (const basis of [before, then])
        if (basis !== undefined) expect(await basis.steps(id)).toEqual(await alone(basis, id));
    }
    const store = await client.delivered();
    const proofs = await now.assemblies(id);
    for (const proof of [proofs[0], proofs.at(-2), proofs.at(-1)]) {
      if (proof === undefined) throw new Error('no context was handed out');
      const { result, sent } = await countRequests(() => new AssemblyRebuilder(store).rebuild(proof));
      expect(result.equal).toBe(true);
      expect(sent).toBeLessThan(7_000);
    }
    const asked = await askContext(await Timeline.open(store), `${id}@turn:81`, {});
    expect(asked).toMatchObject({ matches: true, turn: 81 });
  });

  test('has the sets of a turn that continues far beyond its head and a snapshot', async () => {
    const long = await client.openSession({ id: `long-turn-${randomUUID()}` });
    while (long.state.seq < 103) await call(long, long.state.seq);
    const now = await present();
    const [head] = (await now.sessions()).filter(({ id }) => id === long.id);
    expect(head?.upto).toBe(1);
    expect(await now.sets(long.id)).toMatchObject({ sets: long.state.sets, seq: 103 });
    expect(await now.steps(long.id)).toEqual(await alone(now, long.id));
    await client.closeSession(long);
  });

  test('hides them from reviewers', async () => {
    const timeline = await Timeline.open(await client.delivered());
    const ask = async (query: string) =>
      (await askQuery(timeline, query, { args: `["${page(session.id, 100)}"]` })).answer.rows;
    expect(await ask('[:find ?t :in ?e :where [?e :type ?t]]')).toEqual([]);
    expect(await ask('[:find ?e :in ?e :where [?e :xt/id]]')).toEqual([]);
    expect(await timeline.present.get(page(session.id, 100))).toBeUndefined();
  });

  test('has a fork that reads its parent’s pages and writes those of its own steps', async () => {
    const fork = await client.forkSession(session.id, { at: 130 });
    await grow(fork, 202);
    expect(await missing(fork.id, 202)).toEqual([]);
    const now = await present();
    expect((await now.times([pageId({ session: fork.id, first: 131, last: 200 })])).size).toBe(1);
    expect(await now.steps(fork.id)).toEqual(await alone(now, fork.id));
    expect(await verifySession(await client.delivered(), fork.id)).toMatchObject({ ok: true });
  });

  test('reads the same without pages from an earlier version, and gets them when opened', async () => {
    const { id } = session;
    const steps = await (await present()).steps(id);
    for (const last of [100, 200] as const)
      await executeForeign('delete', page(id, last), new Date(steps[last - 1]?.at ?? 0));
    expect((await missing(id)).map(({ last }) => last)).toEqual([100, 200]);
    expect(await (await present()).steps(id)).toEqual(steps);
    await client.closeSession(session);
    session = await client.openSession({ id });
    expect(await missing(id)).toEqual([]);
    expect(await (await present()).steps(id)).toEqual(steps);
  });

  test('is reported damaged if a step is left only in a page; its answers are still compared', async () => {
    const holed = await client.openSession({ id: `holed-${randomUUID()}` });
    await grow(holed, 102);
    const { id } = holed;
    expect(await verifySession(await client.delivered(), id)).toMatchObject({
      ok: true,
      answers: { total: 51, equal: 51 },
    });
    const at = (await (await present()).step(id, 5))?.at ?? 0;
    await executeForeign('delete', stepId(id, 5), new Date(at));
    const { ok, answers, parts } = await verifySession(await client.delivered(), id);
    expect({ ok, answers }).toMatchObject({ ok: false, answers: { total: 51, equal: 51 } });
    expect(answers.unread).toBeUndefined();
    expect(parts.damages).toContainEqual(
      expect.objectContaining({ what: 'missing', of: expect.stringContaining('no step 5 ') }),
    );
  });

  test('is reported damaged if a page differs from its steps; an invalid page is named', async () => {
    const { id } = session;
    expect((await verifySession(await client.delivered(), id)).ok).toBe(true);
    const put = (text: string) =>
      executeForeign('put', kwMap({ 'xt/id': page(id, 100), type: 'steps', text }), new Date(session.state.lastAt + 1));
    const made = await (await present()).pages.made({ session: id, first: 1, last: 100 });
    await put(String(made?.part.text).replace('"bash"', '"other"'));
    const { parts } = await verifySession(await client.delivered(), id);
    expect(parts.damages).toContainEqual({ part: page(id, 100), what: 'damaged', of: expect.any(String) });
    await put('no page');
    await expect((await present()).steps(id)).rejects.toMatchObject({
      code: 'corrupt-part',
      message: expect.stringContaining(page(id, 100)),
    });
  });
});
