import type { PrefixDiff } from './prefix-diff.js';

const grouped = (count: number): string => String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');

/** Returns whether a phrase already says where it happened. */
const namesPlace = (why: string): boolean => /\b(?:turn|step|epoch) \d/.test(why);

/**
 * Says in one sentence how much of a request was written again, and why: `19,243 tokens were
 * written again because src/cart.ts changed in turn 7.`
 */
export function prefixSentence({ isPrefix, again, written, cause, to }: PrefixDiff): string {
  if (isPrefix || cause === undefined)
    return `Nothing was written again: the request continues the one before it, with ${grouped(written)} new tokens.`;
  const where = namesPlace(cause.why) ? '' : ` in turn ${to.turn}`;
  return `${grouped(again)} tokens were written again because ${cause.why}${where}.`;
}
