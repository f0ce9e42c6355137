import { randomUUID } from 'node:crypto';
import { utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ContextClient } from '../../../src/client/session/context-client.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { ObjectId, SessionId } from '../../../src/objects/ids.js';
import { objectLog } from '../../../src/review/ask/object-log.js';
import { seenBy } from '../../../src/review/ask/seen-by.js';
import { latestTurns, sessionLog } from '../../../src/review/ask/session-log.js';
import type { Lineage } from '../../../src/store/lineage.js';
import { countRequests, openClient, wholeRead } from '../../support/context.js';
import { temporaryRoot } from '../../support/mcp-clients.js';
import { historyOf } from '../../support/object-history.js';
import { type OwnNode, ownNode } from '../../support/own-node.js';
import { runCli } from '../../support/run-cli.js';

const TURNS = 60;
/** Turns that change the file. */
const CHANGES = [1, 14, 15, 37, 59];

describe('history queries on a longer session', () => {
  const name = `long${randomUUID().slice(0, 8)}`;
  let client: ContextClient;
  let remove: () => Promise<void>;
  // A separate node, because the test asks for the turns of all sessions.
  let node: OwnNode;
  let session: SessionId;
  let fork: SessionId;
  let file: ObjectId;

  const read = async (path: string) => wholeRead(client, path);

  beforeAll(async () => {
    const made = await temporaryRoot();
    remove = made.remove;
    node = await ownNode();
    client = await openClient(made.root, { address: node.address });
    const opened = await client.openSession({ id: name });
    session = opened.id;
    for (let turn = 1; turn <= TURNS; turn += 1) {
      await opened.reportMessage({ role: 'user', text: `turn ${turn}` });
      if (CHANGES.includes(turn)) {
        await writeFile(join(made.root, 'a.ts'), `as of turn ${turn}\n`);
        const time = Math.floor(Date.now() / 1_000) - 3_600 + turn;
        await utimes(join(made.root, 'a.ts'), time, time);
      }
      const content = `turn ${turn}\n`;
      const readings = CHANGES.includes(turn) ? [{ ...(await read('a.ts')), activate: true }] : [];
      const { applied } = await opened.recordCall({
        tool: 'x',
        args: { turn },
        status: 'ok',
        content,
        readings,
        answer: () => content,
      });
      await applied;
    }
    const forked = await client.forkSession(name, { id: `${name}-fork`, at: 33 });
    fork = forked.id;
    await forked.reportMessage({ role: 'user', text: 'in the fork' });
    const [found] = [...opened.state.sets.index].filter((id) => !id.startsWith(name));
    if (found === undefined) throw new Error('the file was not indexed');
    file = found;
    await client.store.writes.flush();
  });
  afterAll(async () => {
    await client.close();
    await node.stop();
    await remove();
  });

  test('return the end of the whole log as the newest turns, for any number', async () => {
    for (const id of [session, fork]) {
      const all = await sessionLog(await Timeline.open(await client.delivered()), id);
      if (id === session) expect(all).toHaveLength(TURNS);
      for (const limit of [1, 2, 7, 8, 9, 31, 59, 60, 61, 400])
        expect(await sessionLog(await Timeline.open(await client.delivered()), id, { limit })).toEqual(
          all.slice(0, limit),
        );
    }
  });

  test('return the turns begun by a moment as the newest up to it', async () => {
    const timeline = await Timeline.open(await client.delivered());
    const all = await sessionLog(timeline, session);
    const until = all[40]?.from.getTime() ?? 0;
    const begun = all.filter(({ from }) => from.getTime() <= until).slice(0, 3);
    const [running, ...others] = await sessionLog(await Timeline.open(await client.delivered()), session, {
      limit: 3,
      until,
    });
    // The turn that ran then has its steps up to that moment.
    expect([running?.turn, running?.firstStep]).toEqual([begun[0]?.turn, begun[0]?.firstStep]);
    expect(running?.to.getTime()).toBeLessThanOrEqual(until);
    expect(others).toEqual(begun.slice(1));
    expect(await sessionLog(await Timeline.open(await client.delivered()), session, { limit: 3, until: 0 })).toEqual(
      [],
    );
  });

  test('give the latest turns of all sessions the calls and times of their own logs', async () => {
    const timeline = await Timeline.open(await client.delivered());
    const own = (await latestTurns(timeline, { limit: 500 })).filter((turn) => turn.session === session);
    expect(own).toEqual((await sessionLog(timeline, session)).slice(0, own.length));
    expect(own.length).toBeGreaterThan(20);
  });

  test('return a running turn whole with more steps than one request reads', async () => {
    const running = await client.openSession({ id: `${name}-running` });
    for (let step = 1; step <= 150; step += 1)
      await running.reportMessage({ role: step === 1 ? 'user' : 'assistant', text: `${step}` });
    await client.store.writes.flush();
    const [turn, ...others] = await sessionLog(await Timeline.open(await client.delivered()), running.id, { limit: 1 });
    expect([turn?.firstStep, turn?.lastStep, turn?.messages.length, others]).toEqual([1, 150, 150, []]);
  });

  test('return the latest turns of all logs together with a handful of requests for each', async () => {
    const ids = await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const one = await client.openSession({ id: `${name}-short-${i}` });
        await one.reportMessage({ role: 'user', text: `first of ${i}` });
        await one.reportMessage({ role: 'user', text: `second of ${i}` });
        return one.id;
      }),
    );
    await client.store.writes.flush();
    const timeline = await Timeline.open(await client.delivered());
    const { result, requests } = await countRequests(() => latestTurns(timeline, { limit: 25 }));
    const all = (await Promise.all(ids.map((id) => sessionLog(timeline, id)))).flat();
    const newest = all.map(({ from }) => from.getTime()).sort((a, b) => b - a);
    expect(result.map(({ from }) => from.getTime())).toEqual(newest.slice(0, 25));
    for (const turn of result) expect(all).toContainEqual(turn);
    expect(Object.values(requests).reduce((sum, count) => sum + count, 0)).toBeLessThan(25 * 12);
  });

  test('mark a limited log as having more, unless all turns are requested', async () => {
    const many = await client.openSession({ id: `${name}-many` });
    for (let turn = 1; turn <= 102; turn += 1) await many.reportMessage({ role: 'user', text: `turn ${turn}` });
    await client.store.writes.flush();
    const ask = async (...args: string[]) =>
      JSON.parse((await runCli(['log', many.id, '--data', node.dataDir, '--json', ...args])).stdout);
    expect(await ask()).toMatchObject({
      turns: { length: 100 },
      notes: ['the newest 100 turns; there are more (--limit)'],
    });
    expect(await ask('--limit', '500')).toMatchObject({ turns: { length: 102 }, notes: [] });
  });

  test('report in who, for each turn, the version that a look-up at its transaction returns', async () => {
    const timeline = await Timeline.open(await client.delivered());
    const { present } = timeline;
    const versions = await present.versions(file);
    expect(versions).toHaveLength(CHANGES.length);
    const expected = new Map<number, number[]>();
    const times = await present.stepTimes(
      session,
      (await timeline.steps(session)).map(({ seq }) => seq),
    );
    let active = false;
    for (const { seq, at, turn, changes } of await timeline.steps(session)) {
      active ||= changes.activate?.includes(file) ?? false;
      const txId = times.get(seq)?.txId ?? -1;
      const held = active
        ? versions.findLast((version) => version.txId <= txId && version.validTime.getTime() <= at)
        : undefined;
      if (held !== undefined) expected.set(held.txId, [...new Set([...(expected.get(held.txId) ?? []), turn])]);
    }
    await wasActive(timeline);
    const sighting = (await seenBy(timeline, file)).sightings.find((found) => found.session === session);
    const told = new Map(sighting?.versions.map(({ txId, turns }) => [txId, turns]));
    expect(told).toEqual(expected);
  });

  const wasActive = async (timeline: Timeline): Promise<void> => {
    const { sets } = await timeline.present.sets(session);
    expect(sets.active).toContain(file);
  };

  test('find steps by id in a session and its fork, up to its end', async () => {
    const { present } = await Timeline.open(await client.delivered());
    for (const id of [session, fork]) {
      const all = await present.steps(id);
      const lineage = (await present.lineage(id)) as Lineage;
      for (const [first, last] of [
        [1, 1],
        [5, 40],
        [30, 36],
        [1, Number.MAX_SAFE_INTEGER],
        [all.length + 1, Number.MAX_SAFE_INTEGER],
      ] as const) {
        expect(await present.stepsAlong(lineage, { first, last })).toEqual(all.slice(first - 1, last));
      }
      expect(await present.existingSteps(lineage, [all.length, all.length + 1])).toEqual(new Set([all.length]));
    }
    expect(await present.lineage('nobody' as SessionId)).toBeUndefined();
  });

  test('read a log of versions from heads alone, equal to the versions themselves', async () => {
    const { present } = await Timeline.open(await client.delivered());
    for (const id of [file, `chat:${session}` as ObjectId, `system_prompt:${session}` as ObjectId]) {
      const whole = (await historyOf(present, id)).map(({ version, validTime, txId }, i) => ({
        number: i + 1,
        validTime,
        txId,
        chars: version?.content?.length ?? 0,
        contentHash: version?.content_hash ?? null,
        objectHash: version?.object_hash ?? null,
      }));
      const all = await objectLog(present, id);
      expect(all).toMatchObject(whole.toReversed());
      expect(all).toHaveLength(whole.length);
      for (const limit of [1, 2, 4, 500]) expect(await objectLog(present, id, limit)).toEqual(all.slice(0, limit));
    }
    expect(await objectLog(present, 'nothing' as ObjectId, 3)).toEqual([]);
  });

  test('derive a snapshot of an earlier transaction without a request, equal to a requested one', async () => {
    const { present } = await Timeline.open(await client.delivered());
    const [, second] = await present.versions(file);
    const basis = { validTime: new Date(), txId: second?.txId ?? 0 };
    const earlier = present.earlier(basis);
    expect(await earlier?.versions(file)).toEqual(await (await client.snapshot(basis)).versions(file));
    expect(await earlier?.versions(file)).toHaveLength(2);
    expect(present.earlier({ ...basis, txId: (present.basis.txId ?? 0) + 1 })).toBeUndefined();
  });
});
