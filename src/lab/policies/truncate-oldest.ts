import { tokensOf } from '../../values/token-estimate.js';
import type { TimelineItem } from '../timeline/timeline.js';
import { maskingPolicy, type Rights } from './masking.js';
import { type ContextPolicy, charsOf, itemsOf } from './policy.js';

/** The size, in tokens, above which the oldest part is removed, and the size that remains. */
interface TruncateSettings {
  readonly over: number;
  readonly keep: number;
  readonly rights: Rights;
}

/**
 * Returns the first position from which at most `keep` tokens remain. It never separates a call
 * from its result.
 */
export function startOfTail(items: readonly TimelineItem[], keep: number): number {
  let chars = 0;
  let start = items.length;
  while (start > 0 && tokensOf(chars + (items[start - 1]?.text.length ?? 0)) <= keep) {
    start -= 1;
    chars += items[start]?.text.length ?? 0;
  }
  // If a call is removed, its result is removed too.
  const calls = new Set(items.slice(start).flatMap(({ kind, callId }) => (kind === 'call' ? [callId] : [])));
  while (start < items.length && items[start]?.kind === 'result' && !calls.has(items[start]?.callId)) start += 1;
  return start;
}

/** Returns the items before a position, and the results of the calls before it. */
export function itemsBefore(items: readonly TimelineItem[], start: number): readonly TimelineItem[] {
  const calls = new Set(items.slice(start).flatMap(({ kind, callId }) => (kind === 'call' ? [callId] : [])));
  return items.filter((item, at) => at < start || (item.kind === 'result' && !calls.has(item.callId)));
}

/**
 * A sliding window: a request above the size `over` loses its oldest part. The system prompt and
 * the first user message stay.
 */
export function truncateOldest({ over, keep, rights }: TruncateSettings): ContextPolicy {
  return maskingPolicy({
    name: `truncate oldest, over ${over / 1_000}k to ${keep / 1_000}k`,
    family: 'truncate oldest',
    source: 'a sliding window, as many frameworks have it',
    fidelity: 'exact',
    about:
      `A request over ${over} tokens loses its oldest part until ${keep} are left. System prompt and first user ` +
      'message stay.',
    rights,
    rule: () => (call, conversation) => {
      if (tokensOf(charsOf(conversation.parts(call))) <= over) return undefined;
      const items = itemsOf(call);
      const first = items.find(({ kind }) => kind === 'user');
      const leave = itemsBefore(items, startOfTail(items, keep))
        .filter((item) => item.kind !== 'system' && item !== first)
        .map((item) => ({ item, text: undefined }));
      return { leave };
    },
  });
}
