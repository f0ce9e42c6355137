import { cacheLifetimeMs, isHourCache } from '../../assembly/epoch/prices.js';
import { promptTokens } from '../../history/rebuild/model-calls.js';
import type { ObjectId } from '../../objects/ids.js';
import type { ModelUsage, Step } from '../../objects/step.js';
import type { SessionCall } from '../../review/ask/session-calls.js';
import { DOLLAR_PRICES_AS_OF, dollarsOf } from '../../review/money/dollar-prices.js';
import { tokensOf } from '../../values/token-estimate.js';

/** A model call that its provider counted. */
interface Counted {
  readonly step: number;
  readonly at: number;
  readonly usage: ModelUsage;
}

/** The estimated cost of a session if every request had contained its whole history. */
export interface CostAlone {
  readonly amount: number;
  /** Calls without a listed price. */
  readonly unpriced: number;
  readonly why: string;
}

/** Maximum tokens of an estimated history. The agent would have compacted a larger one. */
const USUAL_WINDOW = 200_000;

/** Returns the estimated tokens of all messages and calls up to each step. */
function historyTokens(steps: readonly Step[], calls: ReadonlyMap<ObjectId, SessionCall>): ReadonlyMap<number, number> {
  const found = new Map<number, number>();
  let chars = 0;
  for (const { seq, message, call } of steps) {
    const made = call === undefined ? undefined : calls.get(call.id);
    chars += (message?.text.length ?? 0) + (made === undefined ? 0 : made.chars + JSON.stringify(made.args).length);
    found.set(seq, tokensOf(chars));
  }
  return found;
}

/**
 * Estimates what a steered session's calls would have cost without Palimpsest. Each request has the
 * whole history. Its beginning comes from the cache unless the cache has expired. The first request
 * has the length that the provider counted.
 */
export function costAlone(
  counted: readonly Counted[],
  { steps, calls }: { readonly steps: readonly Step[]; readonly calls: ReadonlyMap<ObjectId, SessionCall> },
): CostAlone | undefined {
  const history = historyTokens(steps, calls);
  const [first] = counted;
  if (first === undefined) return undefined;
  const base = Math.max(0, promptTokens(first.usage) - (history.get(first.step) ?? 0));
  let [amount, unpriced, longest] = [0, 0, 0];
  let before:
    | { readonly prompt: number; readonly at: number; readonly model: string; readonly isHour: boolean }
    | undefined;
  for (const { step, at, usage } of counted) {
    const model = usage.model ?? '';
    const prompt = base + (history.get(step) ?? 0);
    const isHour = isHourCache(usage, before?.isHour);
    const isWarm =
      before !== undefined && before.model === model && at - before.at <= cacheLifetimeMs(model, before.isHour);
    const cacheRead = isWarm ? Math.min(before?.prompt ?? 0, prompt) : 0;
    const cacheWrite = prompt - cacheRead;
    const tokens = { fresh: 0, cacheRead, cacheWrite, cacheWriteHour: isHour ? cacheWrite : 0 };
    const price = dollarsOf(model, { at, ...tokens, output: usage.output ?? 0 });
    if (price === undefined) unpriced += 1;
    else amount += price;
    longest = Math.max(longest, prompt);
    before = { prompt, at, model, isHour };
  }
  if (unpriced === counted.length) return undefined;
  const limit =
    longest > USUAL_WINDOW
      ? ' It leaves out compactions, although requests would have passed 200,000 tokens.'
      : ' No request would have passed 200,000 tokens.';
  return {
    amount,
    unpriced,
    why:
      'Estimated: the same calls and answers, with the whole history in each request and a warm cache, at list ' +
      `prices of ${DOLLAR_PRICES_AS_OF}.${limit}`,
  };
}
