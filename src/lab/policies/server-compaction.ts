import { tokensOf } from '../../values/token-estimate.js';
import { maskingPolicy, type Rights } from './masking.js';
import { type ContextPolicy, charsOf, itemsOf } from './policy.js';
import { summarised, summaryChars, withoutSystem } from './summary.js';
import { startOfTail } from './truncate-oldest.js';

interface ServerCompactionSettings {
  /** Tokens of a request above which the provider compacts. */
  readonly over: number;
  /** Number of newest tokens that stay behind the summary. */
  readonly keep: number;
  readonly rights: Rights;
}

/** The provider's own compaction: a summary replaces older items, and reasoning stays valid. */
export function serverCompaction({ over, keep, rights }: ServerCompactionSettings): ContextPolicy {
  return maskingPolicy({
    name: `server compaction, over ${over / 1_000}k${keep === 0 ? '' : `, keep ${keep / 1_000}k`}`,
    family: 'server compaction',
    source: 'Anthropic API, compact-2026-09-04; OpenAI, compaction v2',
    fidelity: 'bounded',
    about:
      `In a request over ${over} tokens, a summary of the size in the recording replaces all but the ` +
      `newest ${keep} tokens. Its words are ` +
      'unknown and hold no needed line.',
    keepsReasoning: true,
    rights,
    rule: (timeline) => (call, conversation) => {
      if (tokensOf(charsOf(conversation.parts(call))) <= over) return undefined;
      const start = startOfTail(itemsOf(call), keep);
      // The user's newest message stays, because the model answers it.
      const last = itemsOf(call).findLast(({ kind }) => kind === 'user');
      const leave = withoutSystem(call).filter((item) => item.position < start && item !== last);
      return summarised(call, conversation, { leave, chars: summaryChars(timeline) });
    },
  });
}
