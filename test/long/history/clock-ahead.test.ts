import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { listSessions } from '../../../src/client/session/open-session.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { askContext, askObject, askTurns, askWho } from '../../../src/review/ask/ask.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { ObjectStore } from '../../../src/store/object-store.js';
import type { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { callReport, TrackedProject } from '../../support/tracked-project.js';
import { openTestClient } from '../../support/xtdb.js';

const STEPS = 31;
const TWO_HOURS = 7_200_000;

describe('a clock two hours ahead, and back', () => {
  let project: TrackedProject;
  let xtdb: XtdbClient;
  beforeEach(async () => {
    project = await TrackedProject.create();
    xtdb = openTestClient();
  });
  afterEach(async () => {
    await xtdb.close();
    await project.close();
  });

  /** Adds a message and thirty calls to a session from a process with its own clock. */
  const work = async (
    id: string | undefined,
    clock: () => number,
  ): Promise<{ readonly id: string; readonly seq: number; readonly text: string }> => {
    const client = await project.open({ clock, track: false });
    const session = await client.openSession(id === undefined ? {} : { id });
    await session.reportMessage({ role: 'user', text: `from step ${session.state.seq + 1}` });
    for (let i = 1; i < STEPS; i++)
      await session.recordCall(callReport({ tool: 'bash', content: `output ${session.state.seq + 1}` }));
    const { text } = await session.assemble({ deliver: 'library' });
    const { seq } = session.state;
    expect((await (await client.snapshot()).steps(session.id)).length).toBe(seq);
    expect((await client.close()).unflushed).toBe(0);
    return { id: session.id, seq, text };
  };

  test('hides nothing: every query, verify, the context and a resume agree on the newest step', async () => {
    const ahead = await work(undefined, () => Date.now() + TWO_HOURS);
    const { id, seq, text } = await work(ahead.id, Date.now);
    expect([ahead.seq, seq]).toEqual([STEPS, 2 * STEPS]);

    // A reviewer's process has neither written nor read anything yet.
    const timeline = await Timeline.open(new ObjectStore(xtdb));
    const { turns } = await askTurns(timeline, { session: id });
    expect(turns.map(({ firstStep, lastStep }) => [firstStep, lastStep])).toEqual([
      [STEPS + 1, 2 * STEPS],
      [1, STEPS],
    ]);
    const latest = await askTurns(timeline, { limit: 100 });
    // Named by session and moment, so that a failure shows which turns were returned instead.
    const named = latest.turns.map(({ session, turn, from }) => `${session} ${turn}: ${from.toISOString()}`);
    expect(named.slice(0, 20)).toEqual(expect.arrayContaining([expect.stringMatching(`^${id} 1: `)]));
    expect(named.filter((one) => one.startsWith(`${id} `))).toHaveLength(2);
    const point = await timeline.find({}, undefined);
    const summary = (await listSessions(point.snapshot, [])).find((one) => one.id === id);
    expect(summary).toMatchObject({ turns: 2, steps: 2 * STEPS });
    expect(await askContext(timeline, id, {})).toMatchObject({ step: 2 * STEPS, turn: 2 });
    expect(await askContext(timeline, `${id}@turn:2`, {})).toMatchObject({ step: 2 * STEPS, matches: true, text });
    const call = `${id}:${2 * STEPS}`;
    expect(await askObject(timeline, { object: call })).toMatchObject({ version: { content: `output ${2 * STEPS}` } });
    expect((await askWho(timeline, { object: call })).sightings).toMatchObject([
      { session: id, known: { seq: 2 * STEPS } },
    ]);
    expect((await point.snapshot.get(`chat:${id}`))?.version).toMatchObject({ turns: [{ turn: 1 }, { turn: 2 }] });
    expect(await verifySession(timeline.store, id)).toMatchObject({
      ok: true,
      answers: { total: 2 * STEPS - 2 },
      contexts: { total: 2, equal: 2 },
    });

    const client = await project.open({ track: false });
    const resumed = await client.openSession({ id });
    expect(resumed.state.seq).toBe(2 * STEPS);
    expect((await client.listSessions()).find((one) => one.id === id)).toMatchObject({ turns: 2, steps: 2 * STEPS });
    const { callId } = await resumed.recordCall(callReport({ tool: 'bash', content: 'once more' }));
    expect((await resumed.load(callId))?.version.content).toBe('once more');
    expect((await resumed.assemble()).text).toContain('once more');
  });
});
