import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { requireOwn } from '../../../src/history/rebuild/foreign-session.js';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import { askSearch } from '../../../src/history/search/search.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { sessionMoney } from '../../../src/page/server/session-money.js';
import { sessionStrip } from '../../../src/page/server/session-strip.js';
import { type StripPlace, stripChange, stripPlace } from '../../../src/page/server/strip-changes.js';
import { verbPrice } from '../../../src/page/server/verb-price.js';
import { askPrefixes } from '../../../src/review/ask/prefix-diff.js';
import { countHere } from '../../../src/review/ask/token-count.js';
import { openClient } from '../../support/context.js';
import { RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';

const counted = (tokens: number) => ({ input_tokens: tokens, output_tokens: 40 });
const texts = ['one\ntwo\n', 'one\nthree\n', 'one\nfour\n'] as const;

describe('a session that only a transcript shows', () => {
  let room: Awaited<ReturnType<typeof reviewedRecordings>>;
  let session: SessionId;
  const timeline = () => Timeline.open(room.reviewer.store);

  beforeAll(async () => {
    room = await reviewedRecordings();
    const lines = new RecordingLines()
      .user('The needle is lost.')
      .says('I look for it.', undefined, counted(40_000))
      .calls('g1', 'Grep', { pattern: 'o', path: '/p/a.ts' })
      .answers('g1', '/p/a.ts:1:one')
      .reads('r1', '/p/a.ts', texts[0])
      .edits('e1', '/p/a.ts', texts[0], 'two', 'three')
      .reads('r2', '/p/a.ts', texts[2])
      .user('Go on.')
      .says('I go on.', undefined, counted(30_000));
    const { sessions } = await replay(await room.recordings.write('transcript.jsonl', lines.text));
    session = sessions[0]?.session as SessionId;
  });
  afterAll(() => room.close());

  test('says in a search and in a comparison that the provider counted fewer tokens', async () => {
    const { hits } = await askSearch(await timeline(), { pattern: 'needle', session });
    expect(hits[0]?.seen).toMatchObject([{ session, falls: [{ step: expect.any(Number), fewer: 10_000 }] }]);
    const { hits: later } = await askSearch(await timeline(), { pattern: 'I go on', session });
    expect(later[0]?.seen).toMatchObject([{ falls: [] }]);
    const { compared } = await askPrefixes(await timeline(), { name: session, count: countHere });
    expect(compared.map(({ fewer }) => fewer).filter((fewer) => fewer > 0)).toEqual([10_000]);
  });

  test('marks changes of a file whose text was there, and not its first whole text', async () => {
    const { marks, bands } = await sessionStrip(await timeline(), session, {});
    const nameOf = new Map(bands.map(({ id, name }) => [id, name]));
    const versions = marks.flatMap((mark) => (mark.kind === 'version' ? [[nameOf.get(mark.object), mark.number]] : []));
    expect(versions).toEqual([
      ['/p/a.ts', expect.any(Number)],
      ['/p/a.ts', expect.any(Number)],
    ]);
  });

  test('is followed without another reading of the steps that are known', async () => {
    const { store } = room.reviewer;
    const { paths } = await timeline();
    const latest = (await store.latestTransaction()) ?? 0;
    const last = (await stripPlace(store.newestAt(latest), session)).step;
    let place: StripPlace | undefined;
    for (let tx = latest - 1; tx > 0 && (place === undefined || place.step === last); tx -= 1)
      place = await stripPlace(store.newestAt(tx), session);
    if (place?.told === undefined) throw new Error('no transaction of the import shows a part of it');
    const present = store.newestAt(latest);
    const read = jest.spyOn(present, 'stepsFrom');
    const { change } = await stripChange(place, { present, paths });
    expect(change?.calls.at(-1)).toEqual((await sessionStrip(await timeline(), session, {})).calls.at(-1));
    expect(Math.min(...read.mock.calls.map(([, { first }]) => first))).toBeGreaterThan(1);
  });

  test('refuses changes of its sets, and not those of its fork', async () => {
    const sharing = await openClient(room.recordings.folder, { shareSessions: true });
    const { id: fork } = await sharing.forkSession(session, {});
    await sharing.close();
    await expect(requireOwn(await timeline(), session)).rejects.toMatchObject({
      code: 'foreign-session',
      message: expect.stringMatching(/belongs to another agent.*Fork it/s),
    });
    await expect(verbPrice(await timeline(), { session, object: '/p/a.ts', verb: 'pin' })).rejects.toMatchObject({
      code: 'foreign-session',
    });
    await expect(requireOwn(await timeline(), fork)).resolves.toBeUndefined();
  });
});

test('cache writes of one hour have their own price, and outlive a pause of twelve minutes', async () => {
  const room = await reviewedRecordings();
  const start = Date.UTC(2026, 0, 5, 9);
  const minute = 60_000;
  const wrote = (read: number, fiveMinutes: number, hour: number) => ({
    input_tokens: 0,
    output_tokens: 40,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: fiveMinutes + hour,
    cache_creation: { ephemeral_5m_input_tokens: fiveMinutes, ephemeral_1h_input_tokens: hour },
  });
  const lines = new RecordingLines('claude-opus-4-6')
    .user('Begin.', start)
    .says('One.', start + 1_000, wrote(0, 0, 100_000))
    .user('Go on.', start + 12 * minute)
    .says('Two.', start + 12 * minute + 1_000, wrote(10_000, 0, 95_000))
    .user('End.', start + 90 * minute)
    .says('Three.', start + 90 * minute + 1_000, wrote(0, 100_000, 10_000));
  const { sessions } = await replay(await room.recordings.write('hour.jsonl', lines.text));
  const session = sessions[0]?.session as SessionId;
  const money = await sessionMoney(await Timeline.open(room.reviewer.store), session);
  await room.close();
  const writes = (205_000 * 10 + 100_000 * 6.25) / 1e6;
  expect(money.spent?.amount).toBeCloseTo(writes + (10_000 * 0.5 + 120 * 25) / 1e6, 9);
  expect(money.prices).toMatchObject([{ cache_write: 6.25, cache_write_hour: 10 }]);
  const lost = money.costliest.flatMap(({ cause, sentence }) => (cause === 'lost-cache' ? [sentence] : []));
  expect(lost).toEqual([
    expect.stringMatching(/Nothing recorded shows why\.$/),
    expect.stringMatching(/because the agent paused for 78 minutes/),
  ]);
});
