import { describe, expect, test } from '@jest/globals';
import { decideBorder, type EpochLedger, epochSettings } from '../../../../src/assembly/epoch/border.js';
import { PRICES_AS_OF, pricesOf, TARIFFS } from '../../../../src/assembly/epoch/prices.js';

const prices = pricesOf('claude-opus-5-5');
const ledger = (more: Partial<EpochLedger>): EpochLedger => ({
  calls: 0,
  goesOn: 10_000,
  begins: 4_000,
  shared: 1_000,
  lastAt: 0,
  atUser: true,
  asked: false,
  changed: false,
  ...more,
});
const decided = (more: Partial<EpochLedger>, now = 1_000) =>
  decideBorder(ledger(more), { prices, settings: epochSettings(20_000), now })?.reason;

describe('the border of an epoch (divergence E9)', () => {
  test('ends the epoch once the saving of the expected calls pays for rewriting the unshared text', () => {
    // 4,000 fewer tokens to read at 0.1, against 5,000 tokens written at 1.15 more than reading
    // them: 14.4 calls, 0.15 of 96.
    expect(decided({ begins: 6_000, calls: 95 })).toBeUndefined();
    expect(decided({ begins: 6_000, calls: 96 })).toBe('saving');
    expect(decided({ begins: 6_000, calls: 96, atUser: false })).toBeUndefined();
    // Between five and twenty calls are expected.
    expect(decided({ begins: 2_500 })).toBe('saving');
    expect(decided({ begins: 7_000, calls: 10_000 })).toBeUndefined();
    // Saving less than a twentieth is not worth the forgotten text.
    expect(decided({ begins: 9_600, shared: 9_600, calls: 96 })).toBeUndefined();
  });

  test('ends the epoch for a cold cache, a verb or a changed list; in a turn only for list or pressure', () => {
    expect(decided({ begins: 9_000 }, prices.lifetimeMs)).toBeUndefined();
    expect(decided({ begins: 9_000 }, prices.lifetimeMs + 1)).toBe('cold');
    expect(decided({ begins: 10_000 }, prices.lifetimeMs + 1)).toBeUndefined();
    expect(decided({ asked: true })).toBe('asked');
    expect(decided({ changed: true, asked: true })).toBe('history');
    expect(decided({ asked: true, atUser: false }, prices.lifetimeMs + 1)).toBeUndefined();
    expect(decided({ changed: true, atUser: false })).toBe('history');
  });

  test('ends the epoch at the budget, which follows the window, if that frees a quarter', () => {
    expect(decided({ goesOn: 14_000, atUser: false })).toBeUndefined();
    expect(decided({ goesOn: 14_001, atUser: false })).toBe('pressure');
    expect(decided({ goesOn: 14_001, begins: 11_000, atUser: false })).toBeUndefined();
  });

  test('prices the text written again and the saving of each call', () => {
    const border = decideBorder(ledger({ asked: true }), { prices, settings: epochSettings(), now: 0 });
    expect(border).toEqual({ reason: 'asked', price: { written: 3_000, savedPerCall: 6_000 } });
  });

  test('has dated prices for every model', () => {
    expect(PRICES_AS_OF).toMatch(/^\d{4}-\d\d-\d\d$/);
    expect(pricesOf('gpt-6')).toMatchObject({ write: 1, lifetimeMs: 600_000 });
    expect(pricesOf('openrouter/google/gemini-3').read).toBe(0.25);
    expect(pricesOf('claude-sonnet-5:1h')).toMatchObject({ write: 2, lifetimeMs: 3_600_000 });
    expect(pricesOf(undefined)).toMatchObject({ read: 0.1, write: 1.25, lifetimeMs: 300_000 });
    for (const { read, write, lifetimeMs } of Object.values(TARIFFS)) expect(read < write && lifetimeMs > 0).toBe(true);
  });
});
