import { ownMember } from '../../values/own-member.js';
import type { PrefixDiff } from './prefix-diff.js';

/** Formats a count with commas. */
export const grouped = (count: number): string => String(count).replace(/\B(?=(?:\d{3})+$)/g, ',');

/** Returns whether a phrase already says where it happened. */
const namesPlace = (why: string): boolean => /\b(?:turn|step|epoch) \d/.test(why);

/** The words for each change of the sets that can be a cause. */
const DID: Readonly<Record<string, string>> = {
  found: 'added an object',
  'made active': 'made an object active',
  'no longer active': 'made an object inactive',
  pinned: 'pinned an object',
  'no longer pinned': 'unpinned an object',
};

/** Returns a cause as a clause: `found: step 245, edit` is `edit in step 245 added an object`. */
function clauseOf(why: string): string {
  const [, what = '', step, who] = /^([a-z ]+): step (\d+), (.+)$/.exec(why) ?? [];
  const did = ownMember(DID, what);
  return did === undefined ? why : `${who} in step ${step} ${did}`;
}

/** Returns the cause of a first difference as a clause; undefined if nothing differs. */
export function causeClause({ isPrefix, cause }: Pick<PrefixDiff, 'isPrefix' | 'cause'>): string | undefined {
  return isPrefix || cause === undefined ? undefined : clauseOf(cause.why);
}

/**
 * Describes in one sentence how much of a request was written again, and why: `19,243 tokens were
 * written again because src/cart.ts changed in turn 7.`
 */
export function prefixSentence({ isPrefix, again, written, cause, to }: PrefixDiff): string {
  const clause = causeClause({ isPrefix, cause });
  if (clause === undefined)
    return `Nothing was written again: the request continues the previous one, with ${grouped(written)} new tokens.`;
  const where = namesPlace(clause) ? '' : ` in turn ${to.turn}`;
  return `${grouped(again)} tokens were written again because ${clause}${where}.`;
}
