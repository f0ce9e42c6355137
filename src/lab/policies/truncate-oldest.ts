import { tokensOf } from '../../values/token-estimate.js';
import type { Timeline, TimelineItem } from '../timeline/timeline.js';
import { type ContextPolicy, charsOf, itemsOf, MaskedConversation, type PolicyRequest } from './policy.js';

/** The size above which the oldest part is removed, and the size that stays; tokens. */
interface TruncateSettings {
  readonly over: number;
  readonly keep: number;
}

/**
 * Returns the first position after which at most `keep` tokens remain, never between a call and its
 * result.
 */
function startOf(items: readonly TimelineItem[], keep: number): number {
  let chars = 0;
  let start = items.length;
  while (start > 0 && tokensOf(chars + (items[start - 1]?.text.length ?? 0)) <= keep) {
    start -= 1;
    chars += items[start]?.text.length ?? 0;
  }
  // Results are removed with their calls.
  const calls = new Set(items.slice(start).flatMap(({ kind, callId }) => (kind === 'call' ? [callId] : [])));
  while (start < items.length && items[start]?.kind === 'result' && !calls.has(items[start]?.callId)) start += 1;
  return start;
}

/**
 * A sliding window: a request over a size loses its oldest part. The system prompt and the first
 * user message stay.
 */
export function truncateOldest({ over, keep }: TruncateSettings): ContextPolicy {
  return {
    name: `truncate oldest, over ${over / 1_000}k to ${keep / 1_000}k`,
    family: 'peer',
    about:
      `A request over ${over} tokens loses its oldest part until ${keep} are left. System prompt and first user ` +
      'message stay.',
    reach: 'none',
    *requests({ calls }: Timeline): Iterable<PolicyRequest> {
      const conversation = new MaskedConversation();
      for (const call of calls) {
        if (tokensOf(charsOf(conversation.parts(call))) > over) {
          const items = itemsOf(call);
          const start = startOf(items, keep);
          const first = items.find(({ kind }) => kind === 'user');
          const orphans = new Set(items.slice(start).flatMap(({ kind, callId }) => (kind === 'call' ? [callId] : [])));
          for (const [at, item] of items.entries()) {
            const isOrphan = item.kind === 'result' && !orphans.has(item.callId);
            if ((at < start || isOrphan) && item.kind !== 'system' && item !== first)
              conversation.mask(item, undefined);
          }
        }
        yield { parts: conversation.parts(call) };
      }
    },
  };
}
