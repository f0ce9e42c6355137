import { describe, expect, test } from '@jest/globals';
import type { SentRequest } from '../../../src/gateway/read-log.js';
import { type Arm, type ArmSession, addRequest, compareArms } from '../../../src/own-sessions/savings.js';

const arm = (of: Arm, count: number, tokens: number): readonly ArmSession[] =>
  Array.from({ length: count }, (_, i) => ({
    arm: of,
    calls: 10,
    tokens: tokens + i,
    cached: (tokens + i) * 0.9,
    dollars: (tokens + i) / 1_000,
  }));

describe('savings of a gateway that steers', () => {
  test('have an interval that contains the ratio, and the same one in every run', () => {
    const all = [...arm('steered', 40, 5_000), ...arm('control', 12, 10_000)];
    const { sessions, measures } = compareArms(all);
    expect(sessions).toEqual({ steered: 40, control: 12 });
    const { ratio } = measures.tokensPerCall;
    expect(ratio?.value).toBeCloseTo(0.5, 2);
    expect(ratio?.low).toBeLessThan(ratio?.value ?? 0);
    expect(ratio?.high).toBeGreaterThan(ratio?.value ?? 1);
    expect(measures.cached.ratio?.value).toBeCloseTo(1, 9);
    expect(compareArms(all)).toEqual({ sessions, measures });
  });

  test('have no interval if an arm has fewer than ten sessions', () => {
    const { measures } = compareArms([...arm('steered', 40, 5_000), ...arm('control', 9, 10_000)]);
    expect(Object.values(measures).map(({ ratio }) => ratio)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
  });

  test('sum up the logged requests of a session, and leave out requests of a gateway that does not steer', () => {
    const sessions = new Map<string, ArmSession>();
    const request = (more: object): SentRequest =>
      ({
        id: 'a:1',
        at: 1,
        session: { agent: 'claude-code', native: 's', from: 'header' },
        model: 'claude-opus-5-5',
        answer: { status: 200, usage: { input: 100, cacheRead: 1_000, cacheWrite: 10, output: 5 } },
        steer: { arm: 'control', how: 'exact', ms: 0, bytes: 1 },
        ...more,
      }) as unknown as SentRequest;
    addRequest(sessions, request({}));
    addRequest(sessions, request({}));
    addRequest(sessions, request({ steer: undefined }));
    addRequest(sessions, request({ answer: undefined }));
    expect([...sessions.values()]).toEqual([
      { arm: 'control', calls: 2, tokens: 2_220, cached: 2_000, dollars: expect.closeTo(0.0015, 6) },
    ]);
  });
});
