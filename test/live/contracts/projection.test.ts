import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { budgetedView } from '../../../src/contracts/projection/budgeted-view.js';
import type { Projection } from '../../../src/contracts/projection/project-session.js';
import { HOUSE_COUNTER, ProjectionReader, readProjection } from '../../../src/contracts/projection/read-projection.js';
import { HistoryError } from '../../../src/history/rebuild/history-error.js';
import { askedMoment } from '../../../src/history/rebuild/moment.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { hashText } from '../../../src/objects/hashes.js';
import { sessionId } from '../../../src/objects/ids.js';
import { countRequests } from '../../support/context.js';
import { entryFindings } from '../../support/pair-check.js';
import { HOSTILE, type ReviewedSessions, reviewedSessions } from '../../support/reviewed-sessions.js';

describe('the projection of a session', () => {
  const name = `projected-${randomUUID()}`;
  const first = sessionId(`${name}-first`);
  let sessions: ReviewedSessions;
  let timeline: Timeline;

  const at = (moment?: string, of = first): Promise<Projection> =>
    readProjection(timeline, of, { when: askedMoment({ at: moment }) });
  const shown = ({ entries }: Projection): readonly string[] =>
    entries.map((entry) =>
      `${entry.turn} ${entry.kind} ${entry.kind === 'result' ? entry.tool : entry.text}`.trimEnd(),
    );

  beforeAll(async () => {
    sessions = await reviewedSessions(name);
    timeline = await Timeline.open(await sessions.client.delivered());
  });
  afterAll(() => sessions?.close());

  test('shows now: prompt, messages, calls, results in order, set states, files with texts, all versions', async () => {
    const projection = await at();
    expect(shown(projection)).toEqual([
      '0 system You are careful.',
      '1 user Look at a.ts',
      '1 assistant',
      '1 result read',
      '2 user Change it',
      '2 assistant',
      '2 result read',
      '2 result pin',
      '2 result ls',
      '2 result bash',
      '3 user Now drop it.',
      '3 assistant',
      '3 result deactivate',
    ]);
    expect(projection).toMatchObject({ turn: 3, running: { turn: 3, calls: [] }, counter: HOUSE_COUNTER });
    expect(
      entryFindings(projection.entries, { running: true }).filter(({ rule }) => rule !== 'unfinished-turn'),
    ).toEqual([]);
    const hostile = projection.entries.find((entry) => entry.kind === 'result' && entry.call === sessions.hostileCall);
    expect(hostile).toMatchObject({
      text: HOSTILE,
      status: 'fail',
      sha256: hashText(HOSTILE),
      tokens: HOUSE_COUNTER.count(HOSTILE),
    });
    const [file, stub] = projection.files;
    expect([file?.metadata.id, stub?.metadata.id]).toEqual([sessions.file, sessions.stub]);
    expect(file).toMatchObject({ active: false, pinned: true, content: 'three\nshared\n' });
    expect(stub).toMatchObject({ active: false, pinned: false, content: undefined });
    expect(projection.versions.size).toBe(projection.sets.index.length + 1);
    expect(await at()).toEqual(projection);
  });

  test('shows an earlier turn with the same ids and hashes, and the sets and files of that time', async () => {
    const [now, then] = [await at(), await at('turn:2')];
    expect(then.entries.map(({ id, sha256 }) => [id, sha256])).toEqual(
      now.entries.filter(({ turn }) => turn <= 2).map(({ id, sha256 }) => [id, sha256]),
    );
    expect(then.files[0]).toMatchObject({ active: true, pinned: true, content: 'two\nshared\n' });
    const inside = await at('turn:2.2');
    expect(inside.entries.at(-1)?.id).toBe('r4');
    const tx = await at(`tx:${then.basis.txId}`);
    expect(tx.digest).toBe(then.digest);
    expect(budgetedView(then, { tokens: 100_000 }).items).toHaveLength(then.entries.length);
  });

  test('shows the parent’s steps of a fork as its own', async () => {
    const fork = await sessions.client.forkSession(first, { at: 4, id: `${name}-fork` });
    await fork.reportMessage({ role: 'user', text: 'Another way' });
    const later = await Timeline.open(await sessions.client.delivered());
    const projection = await readProjection(later, fork.id);
    const parent = await at('step:4');
    expect(projection.entries.slice(0, -1).map(({ id, sha256 }) => [id, sha256])).toEqual(
      parent.entries.map(({ id, sha256 }) => [id, sha256]),
    );
    expect(projection.entries.at(-1)).toMatchObject({ kind: 'user', text: 'Another way' });
    expect((await readProjection(later, fork.id, { when: askedMoment({ at: 'step:2' }) })).entries.at(-1)?.id).toBe(
      'r2',
    );
  });

  test('reads only newer data the second time, and no immutable data twice', async () => {
    const reader = new ProjectionReader();
    const session = await sessions.client.forkSession(first, { at: 9, id: `${name}-again` });
    const record = async (text: string) => {
      const call = { tool: 'bash', args: {}, status: 'ok', content: text, answer: () => text } as const;
      await (await session.recordCall(call)).applied;
      return Timeline.open(await sessions.client.delivered());
    };
    await session.reportMessage({ role: 'user', text: 'More' });
    const one = await record('x'.repeat(5_000));
    const before = await countRequests(() => reader.read(one, session.id));
    const again = await countRequests(() => reader.read(one, session.id));
    expect(again.result).toEqual(before.result);
    expect(again.sent).toBeLessThan(before.sent);
    const two = await record('y');
    const later = await reader.read(two, session.id);
    expect(later).toEqual(await readProjection(two, session.id));
    expect(later.entries.slice(0, before.result.entries.length).map(({ id }) => id)).toEqual(
      before.result.entries.map(({ id }) => id),
    );
    // An earlier timeline keeps its state.
    expect(await reader.read(one, session.id)).toEqual(before.result);
    expect(await reader.read(two, session.id, askedMoment({ at: 'turn:2' }))).toEqual(
      await readProjection(two, session.id, { when: askedMoment({ at: 'turn:2' }) }),
    );
    // Pending requests are read again until they are answered, and later decisions are seen.
    const { seq, turn } = session.state;
    const note = { owner: { session: session.id }, turn, seq, basis: null } as const;
    await session.keepRecords([
      { ...note, kind: 'call', at: Date.now(), body: { native: 'open', tool: 'bash', args: {}, by: seq } },
      { ...note, kind: 'approval', at: Date.now(), body: { approval: 'ask', state: 'pending', text: 'may I?' } },
    ]);
    const three = await record('z');
    const waiting = await reader.read(three, session.id);
    expect([waiting.running?.calls.length, waiting.running?.approvals.length]).toEqual([1, 1]);
    expect(waiting).toEqual(await readProjection(three, session.id));
    const decided = { approval: 'ask', state: 'approved', text: 'may I?' } as const;
    await session.keepRecords([{ ...note, seq: session.state.seq, kind: 'approval', at: Date.now(), body: decided }]);
    await session.recordCall({ callId: 'open', tool: 'bash', args: {}, status: 'ok', content: 'w', answer: () => 'w' });
    for (const text of ['v', 'u']) {
      const now = await record(text);
      const settled = await reader.read(now, session.id);
      expect(settled.running?.calls ?? []).toEqual([]);
      expect(settled).toEqual(await readProjection(now, session.id));
    }
    expect(await reader.read(three, session.id)).toEqual(waiting);
  });

  test('refuses a missing session or moment', async () => {
    await expect(at('turn:9')).rejects.toMatchObject({ code: 'beyond-end' });
    await expect(at('now', sessionId('nobody'))).rejects.toBeInstanceOf(HistoryError);
    await expect(at('2001-01-01')).rejects.toMatchObject({ code: 'not-yet' });
  });
});
