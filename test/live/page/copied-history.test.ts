import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { Timeline } from '../../../src/history/rebuild/timeline.js';
import type { SessionId } from '../../../src/objects/ids.js';
import { conversation } from '../../../src/page/server/conversation.js';
import { sessionMoney } from '../../../src/page/server/session-money.js';
import { sessionFigures } from '../../../src/review/money/session-figures.js';
import { RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';

const BEGAN = Date.UTC(2026, 2, 1, 9);
const FORKED = Date.UTC(2026, 2, 1, 14);

/** An id of version 7, which begins with its time. */
function idOf(ms: number): string {
  const time = ms.toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000001`;
}

const line = (at: number, type: string, payload: object): string =>
  JSON.stringify({ timestamp: new Date(at).toISOString(), type, payload });
const meta = (at: number, began: number, more: object = {}): string =>
  line(at, 'session_meta', { id: idOf(began), timestamp: new Date(began).toISOString(), cwd: '/p', ...more });
const turn = (at: number, began: number): string =>
  line(at, 'event_msg', { type: 'task_started', turn_id: idOf(began) });
const says = (at: number, role: 'user' | 'assistant', text: string): string =>
  line(at, 'response_item', { type: 'message', role, content: [{ type: 'input_text', text }] });
const counts = (at: number, [input, cached, output]: readonly [number, number, number]): string => {
  const usage = { input_tokens: input, cached_input_tokens: cached, output_tokens: output };
  return line(at, 'event_msg', { type: 'token_count', info: { total_token_usage: usage, last_token_usage: usage } });
};

/** The own part follows the copy so soon that no pause shows where it begins. */
const COPY = FORKED + 30;
const FORK = [
  meta(COPY, FORKED, { forked_from_id: idOf(BEGAN) }),
  meta(COPY, BEGAN),
  turn(COPY, BEGAN + 60_000),
  line(COPY, 'turn_context', { turn_id: idOf(BEGAN + 60_000), cwd: '/p', model: 'gpt-5.4' }),
  says(COPY, 'user', 'Mend the cart.'),
  says(COPY, 'assistant', 'It is mended.'),
  counts(COPY, [100_000, 0, 1_000]),
  turn(COPY + 2, FORKED + 20),
  says(COPY + 3, 'user', 'Check the total.'),
  says(COPY + 900, 'assistant', 'The total is right.'),
  counts(COPY + 901, [101_000, 1_000, 100]),
];

describe('a session whose transcript begins with the history of its parent', () => {
  let room: Awaited<ReturnType<typeof reviewedRecordings>>;
  let timeline: Timeline;
  let session: string;

  beforeAll(async () => {
    room = await reviewedRecordings();
    const path = await room.recordings.write('fork.jsonl', `${FORK.join('\n')}\n`);
    ({ session = '' } = (await replay(path)).sessions[0] ?? {});
    timeline = await Timeline.open(room.reviewer.store);
  });
  afterAll(() => room.close());

  test("shows the parent's turns as such, with their times, and where its own part begins", async () => {
    const { rows, title } = await conversation(timeline, { session, limit: 100 });
    expect(title).toBe('Check the total.');
    expect(
      rows.map((row) => [row.kind, 'inherited' in row ? row.inherited : row.kind === 'event' && row.text]),
    ).toEqual([
      ['turn', true],
      ['message', true],
      ['message', true],
      ['event', `Everything before this line was made in the session ${idOf(BEGAN)}`],
      ['turn', false],
      ['message', false],
      ['message', false],
    ]);
    expect(rows[0]?.at).toMatch(/^2026-03-01T09:01:00/);
  });

  test('is the same for a fork of Claude Code, whose records name the session that they come from', async () => {
    const lines = new RecordingLines().user('One.').says('First.').user('Two.').says('Second.').lines;
    const fork = lines.map((text, i) =>
      JSON.stringify({
        ...JSON.parse(text),
        ...(i < 2 ? { forkedFrom: { sessionId: 's-0', messageUuid: `o${i}` } } : {}),
      }),
    );
    const path = await room.recordings.write('claude.jsonl', `${fork.join('\n')}\n`);
    const [replayed] = (await replay(path)).sessions;
    const { rows } = await conversation(await Timeline.open(room.reviewer.store), {
      session: replayed?.session ?? '',
      limit: 100,
    });
    expect(
      rows.flatMap((row) => {
        if (row.kind === 'message') return [String(row.inherited)];
        return row.kind === 'event' ? [row.text] : [];
      }),
    ).toEqual(['true', 'true', 'Everything before this line was made in the session s-0', 'false', 'false']);
  });

  test('costs what its own calls cost, and names the fork as the cause of the lost cache', async () => {
    const own = (100_000 * 2.5 + 1_000 * 0.25 + 100 * 15) / 1e6;
    const figures = await sessionFigures(timeline.present, session as SessionId);
    expect(figures).toMatchObject({ calls: 1, spent: { calls: 1, fresh: 100_000, cacheRead: 1_000, output: 100 } });
    expect(figures.from).toBeGreaterThan(FORKED);
    const money = await sessionMoney(timeline, session);
    expect(money.spent?.amount).toBeCloseTo(own, 6);
    expect(money.inherited).toBe(`It begins with 1 call of the session ${idOf(BEGAN)}, which is not counted here.`);
    expect(money.costliest[0]?.sentence).toMatch(/^99,000 tokens were written again in turn 2 because it is the first/);
  });
});
