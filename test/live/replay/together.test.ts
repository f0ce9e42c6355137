import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { sessionId } from '../../../src/objects/ids.js';
import { verifySession } from '../../../src/review/verify/verify-session.js';
import { RecordingLines, replay, reviewedRecordings } from '../../support/replays.js';

let setting: Awaited<ReturnType<typeof reviewedRecordings>>;
beforeAll(async () => {
  setting = await reviewedRecordings();
});
afterAll(() => setting.close());

/** Replays a recording. Returns the transactions of its steps and records, in their order. */
async function replayed(lines: RecordingLines) {
  const { recordings, reviewer } = setting;
  const path = await recordings.write(`${lines.lines.length}.jsonl`, lines.text);
  const report = await replay(path);
  const session = sessionId(report.sessions[0]?.session ?? '');
  const present = await reviewer.store.latest();
  const steps = await present.steps(session);
  const times = await present.stepTimes(
    session,
    steps.map(({ seq }) => seq),
  );
  const { contexts } = await verifySession(reviewer.store, session);
  return { steps, txIds: steps.map(({ seq }) => times.get(seq)?.txId ?? -1), contexts };
}

const text = (name: string): string => `export const ${name} = 1;\n${'// a line\n'.repeat(20)}`;

describe('the steps of a replay', () => {
  test('share transactions, and every context is rebuilt from its record', async () => {
    const lines = new RecordingLines().user('read all of them');
    for (let i = 0; i < 60; i += 1) lines.reads(`t${i}`, `/p/file-${i}.ts`, text(`v${i}`));
    const { steps, txIds, contexts } = await replayed(lines.says('done'));
    expect(steps.length).toBeGreaterThan(120);
    expect(new Set(txIds).size).toBeLessThan(steps.length / 3);
    expect([...txIds].sort((a, b) => a - b)).toEqual(txIds);
    expect(contexts).toMatchObject({ total: 61, equal: 61 });
  });

  test('begin a new transaction where a file changes, so that contexts before it keep its former text', async () => {
    const lines = new RecordingLines().user('count');
    let now = text('v0');
    for (let i = 1; i <= 12; i += 1) {
      const next = now.replace(/v\d+/, `v${i}`);
      lines.reads(`r${i}`, '/p/a.ts', now).edits(`e${i}`, '/p/a.ts', now, `v${i - 1}`, `v${i}`);
      now = next;
    }
    const { txIds, contexts } = await replayed(lines.says('done'));
    expect(new Set(txIds).size).toBeGreaterThanOrEqual(12);
    expect(contexts).toMatchObject({ total: 25, equal: 25 });
  });

  test('of one moment have transactions of their own', async () => {
    const at = Date.UTC(2026, 0, 5, 10);
    const lines = new RecordingLines().user('say', at);
    for (let i = 0; i < 10; i += 1) lines.says(`word ${i}`, at);
    const { steps, txIds } = await replayed(lines);
    expect(new Set(txIds).size).toBe(steps.length);
  });
});
