import { tokensOf } from '../../values/token-estimate.js';
import type { ModelCall } from '../timeline/timeline.js';
import { maskingPolicy, type Rights } from './masking.js';
import { type ContextPolicy, charsOf, itemsOf } from './policy.js';
import { summarised, summaryChars, withoutSystem } from './summary.js';

interface IdleCompactionSettings {
  /** Minutes without a call after which the context is compacted. */
  readonly minutes: number;
  /** Smaller requests, in tokens, are not compacted. */
  readonly over: number;
  readonly rights: Rights;
}

/**
 * Compacts after an idle time. The cache is cold by then, so the summary costs only one more read.
 */
export function idleCompaction({ minutes, over, rights }: IdleCompactionSettings): ContextPolicy {
  return maskingPolicy({
    name: `idle compaction, ${minutes} min, over ${over / 1_000}k`,
    family: 'idle compaction',
    source: 'Claude Code 2.1 (about 54 minutes, above 200k tokens)',
    fidelity: 'bounded',
    about:
      `After ${minutes} idle minutes a summary of the size in the recording replaces a request over ` +
      `${over} tokens. Its ` +
      'words are unknown.',
    rights,
    rule: (timeline) => {
      let before: ModelCall | undefined;
      return (call, conversation) => {
        const last = before;
        before = call;
        const idle = call.at === undefined || last?.at === undefined ? 0 : call.at - last.at;
        if (idle < minutes * 60_000 || tokensOf(charsOf(conversation.parts(call))) <= over) return undefined;
        const newest = itemsOf(call).findLast(({ kind }) => kind === 'user');
        const leave = withoutSystem(call).filter((item) => item !== newest);
        return summarised(call, conversation, { leave, chars: summaryChars(timeline) });
      };
    },
  });
}
