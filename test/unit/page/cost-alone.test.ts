import { describe, expect, test } from '@jest/globals';
import type { Step } from '../../../src/objects/step.js';
import { costAlone } from '../../../src/page/server/cost-alone.js';
import { dollarsOf } from '../../../src/review/money/dollar-prices.js';

const MODEL = 'claude-sonnet-4-5';
const AT = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const said = (seq: number, chars: number): Step =>
  ({ session: 's', seq, turn: 1, at: AT, message: { role: 'user', text: 'x'.repeat(chars) } }) as unknown as Step;
const price = (cacheRead: number, cacheWrite: number): number =>
  dollarsOf(MODEL, { at: AT, fresh: 0, cacheRead, cacheWrite, output: 10 }) ?? Number.NaN;

describe('the cost of a steered session without Palimpsest', () => {
  const steps = [said(1, 4_000), said(2, 8_000)];
  const usage = { model: MODEL, input: 5_000, output: 10 };
  const alone = (gap: number, model = MODEL) =>
    costAlone(
      [
        { step: 1, at: AT, usage: { ...usage, model } },
        { step: 2, at: AT + gap, usage: { ...usage, model } },
      ],
      { steps, calls: new Map() },
    );

  test('counts the whole history in each request, and reads its beginning from the cache until that expires', () => {
    const second = 5_000 + Math.ceil(8_000 / 4);
    const [warm, cold] = [alone(MINUTE), alone(180 * MINUTE)];
    // The history is estimated, so the sums are only approximate.
    expect(warm?.amount).toBeCloseTo(price(0, 5_000) + price(5_000, second - 5_000), 2);
    expect(cold?.amount).toBeCloseTo(price(0, 5_000) + price(0, second), 2);
    expect(cold?.amount).toBeGreaterThan(1.3 * (warm?.amount ?? Number.POSITIVE_INFINITY));
    expect(warm?.why).toMatch(/^Estimated: the same calls and answers/);
  });

  test('is not known for models without a price, or without counted calls', () => {
    expect(alone(MINUTE, 'a model without a price')).toBeUndefined();
    expect(costAlone([], { steps, calls: new Map() })).toBeUndefined();
  });
});
