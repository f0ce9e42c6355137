import type { ModelUsage } from '../../objects/step.js';
import { dollarsOf } from './dollar-prices.js';

/** Tokens of model calls by how the provider counted them, and their cost. */
export interface Spending {
  /** Calls that a provider counted. */
  calls: number;
  /** Prompt tokens outside of the cache. */
  fresh: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  /** US dollars of the calls with a known price. */
  amount: number;
  /** Calls whose cost the agent recorded. */
  recorded: number;
  /** Calls without a known price. */
  unpriced: number;
}

/** Returns an empty sum. */
export const noSpending = (): Spending => ({
  calls: 0,
  fresh: 0,
  cacheRead: 0,
  cacheWrite: 0,
  output: 0,
  amount: 0,
  recorded: 0,
  unpriced: 0,
});

/**
 * Returns the cost of a model call in US dollars: the cost that the agent recorded, or the cost by
 * list prices. Undefined if neither is known.
 */
export function costOf(
  usage: ModelUsage,
  { at, model = '' }: { at: number; model?: string | undefined },
): number | undefined {
  const { input: fresh = 0, cacheRead = 0, cacheWrite = 0, cacheWriteHour, output = 0 } = usage;
  return usage.cost ?? dollarsOf(usage.model ?? model, { at, fresh, cacheRead, cacheWrite, cacheWriteHour, output });
}

/** Adds a model call to a sum. */
export function addCall(sum: Spending, usage: ModelUsage, of: { at: number; model?: string | undefined }): void {
  const cost = costOf(usage, of);
  sum.calls += 1;
  sum.fresh += usage.input ?? 0;
  sum.cacheRead += usage.cacheRead ?? 0;
  sum.cacheWrite += usage.cacheWrite ?? 0;
  sum.output += usage.output ?? 0;
  if (usage.cost !== undefined) sum.recorded += 1;
  if (cost === undefined) sum.unpriced += 1;
  else sum.amount += cost;
}

/** Adds a sum to another one. */
export function addSpending(sum: Spending, other: Spending): void {
  for (const name of Object.keys(sum) as (keyof Spending)[]) sum[name] += other[name];
}

/** Returns all tokens of a sum. */
export const tokensOf = ({ fresh, cacheRead, cacheWrite, output }: Spending): number =>
  fresh + cacheRead + cacheWrite + output;

/** Returns the tokens of a sum for an HTTP answer. Undefined if no provider counted any. */
export const shownTokens = (sum: Spending) =>
  sum.calls === 0
    ? undefined
    : {
        fresh: sum.fresh,
        cacheRead: sum.cacheRead,
        cacheWrite: sum.cacheWrite,
        output: sum.output,
        total: tokensOf(sum),
      };

/** Returns the cost of a sum for an HTTP answer. Undefined if no call has a known price. */
export function shownCost(sum: Spending) {
  const priced = sum.calls - sum.unpriced;
  if (priced === 0) return undefined;
  const source = sum.recorded === 0 ? 'list' : sum.recorded === priced ? 'recorded' : 'mixed';
  return { amount: sum.amount, currency: 'USD', source, unpriced: sum.unpriced } as const;
}
