import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { parseLabConfig } from '../../../../src/lab/laboratory/lab-config.js';
import type { LabReport } from '../../../../src/lab/laboratory/lab-report.js';
import { spread } from '../../../../src/lab/laboratory/plots.js';
import { runLab } from '../../../../src/lab/laboratory/run-lab.js';
import { limitsOf, verdictsOf } from '../../../../src/lab/laboratory/verdicts.js';
import type { PooledScore } from '../../../../src/lab/scorecard/pooled.js';
import { longRecording, recordingFolder } from '../../../support/replays.js';
import { noDatabase } from '../../../support/timelines.js';

let recordings: Awaited<ReturnType<typeof recordingFolder>>;
let base: LabReport;
beforeEach(async () => {
  recordings = await recordingFolder();
  const config = parseLabConfig({ policies: [{ policy: 'last-results', keep: 3 }], least: 10 }, 'test');
  const path = await recordings.write('a.jsonl', longRecording(12).text);
  base = (await runLab([path], { config, open: noDatabase })).report;
});
afterEach(() => recordings.remove());

const flat = (value: number) => ({ value, low: value, high: value });

/** Returns the report with our policy: figures of the peer, with some of them replaced. */
function withOurs(figures: Partial<PooledScore>, costFactor = 1): LabReport {
  const peer = base.policies.find(({ name }) => name === 'last 3 results');
  if (peer?.pooled.all === undefined) throw new Error('no peer');
  const ours = {
    ...peer,
    name: 'Palimpsest epoch',
    family: 'Palimpsest epoch',
    kind: 'own' as const,
    pooled: { all: { ...peer.pooled.all, ...figures } },
  };
  const sessions = base.sessions.map((session) => {
    const score = session.policies['last 3 results']?.score;
    if (score === undefined) throw new Error('no score');
    const cost = Object.fromEntries(Object.entries(score.cost).map(([name, one]) => [name, one * costFactor]));
    return { ...session, policies: { ...session.policies, 'Palimpsest epoch': { score: { ...score, cost } } } };
  });
  const family = { family: ours.family, kind: ours.kind, published: ours.name };
  return { ...base, sessions, policies: [...base.policies, ours], families: [...base.families, family] };
}

describe('the sentences of a report', () => {
  test.each([
    [{ value: 0.7, low: 0.6, high: 0.9 }, 'costs less than what the programs sent'],
    [{ value: 0.7, low: 0.6, high: 1.1 }, 'costs about as much as what the programs sent'],
    [{ value: 1.3, low: 1.2, high: 1.4 }, 'costs more than what the programs sent'],
  ])('say by the interval whether the cost is lower: %j', (vsSent, words) => {
    expect(verdictsOf(withOurs({ vsSent }))[0]).toContain(words);
  });

  test.each([
    [0.95, 0.98, 'This reaches the goal'],
    [0.94, 0.98, 'This misses the goal'],
    [0.95, 0.97, 'This misses the goal'],
  ])('say whether %d of the calls and %d of the lines reach the goal', (calls, lines, words) => {
    expect(verdictsOf(withOurs({ callsKept: flat(calls), linesKept: flat(lines) }))[1]).toContain(words);
  });

  test('name each policy of others, or the sent requests, that keep as much at no higher cost', () => {
    expect(verdictsOf(withOurs({}, 3))[2]).toMatch(/for no more cost on the same sessions: .*last 3 results/);
    expect(verdictsOf(withOurs({}, 3))[2]).toContain('as the harness sent it');
    expect(verdictsOf(withOurs({}, 0.1))[2]).toMatch(/^None of the 2 other policies keeps as many calls/);
  });

  test('are absent without our policy', () => {
    expect(verdictsOf(base)).toEqual([]);
  });

  test('state the limits by the data: no held-out side, and a session of great weight', () => {
    expect(limitsOf(base)).toContain('chosen on the sessions that they are reported on');
    expect(limitsOf({ ...base, split: { by: 'named', train: ['a'], test: ['b'] } })).toContain('on 1 sessions');
  });
});

test('labels of a plot keep their order and do not overlap', () => {
  const places = spread([100, 101, 102, 300, 0], 20, 200);
  const sorted = [...places].sort((a, b) => a - b);
  for (const [i, place] of sorted.entries()) if (i > 0) expect(place - (sorted[i - 1] ?? 0)).toBeGreaterThanOrEqual(13);
  expect([Math.min(...places) >= 20, Math.max(...places) <= 200]).toEqual([true, true]);
  expect(places[4]).toBe(sorted[0]);
});
