import { requestCost, tableOf } from '../../src/lab/prices/price-table.js';
import { type ThinkingRequest, wireText } from './prefix-check.js';

/** Returns the length of the common beginning of two texts. */
function shared(a: string, b: string): number {
  const most = Math.min(a.length, b.length);
  let at = 0;
  while (at < most && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  return at;
}

/** Claude Code's first block differs in every request, and the provider does not count it. */
const withoutBilling = (request: ThinkingRequest): ThinkingRequest => {
  const { system } = request;
  if (typeof system !== 'object') return request;
  return { ...request, system: system.filter(({ text }) => !String(text).startsWith('x-anthropic-billing-header')) };
};

/**
 * Returns the cost of a conversation's requests up to each one, in characters at the dated
 * prices of a model. The provider's cache has the whole previous request.
 */
export function costsOf(bodies: readonly string[], model: string): readonly number[] {
  const prices = tableOf(model);
  let before = '';
  let sum = 0;
  return bodies.map((body) => {
    const text = wireText(withoutBilling(JSON.parse(body) as ThinkingRequest));
    sum += requestCost(prices, { size: text.length, same: shared(before, text) });
    before = text;
    return sum;
  });
}

/**
 * Returns the same, by lengths alone, for requests that each begin with the whole previous request.
 */
export function costsOfGrowing(lengths: readonly number[], model: string): readonly number[] {
  const prices = tableOf(model);
  let before = 0;
  let sum = 0;
  return lengths.map((size) => {
    sum += requestCost(prices, { size, same: Math.min(before, size) });
    before = size;
    return sum;
  });
}
