import { maskingPolicy, type Rights } from './masking.js';
import type { ContextPolicy } from './policy.js';
import { summarised, summaryChars, withoutSystem } from './summary.js';
import { itemsBefore } from './truncate-oldest.js';

interface CondenserSettings {
  /** The context is condensed above this number of events. */
  readonly events: number;
  /** Number of oldest events that always stay. */
  readonly first: number;
  readonly rights: Rights;
}

/** OpenHands' condenser: half of the events stay, and a summary replaces those in the middle. */
export function openhandsCondenser({ events, first, rights }: CondenserSettings): ContextPolicy {
  return maskingPolicy({
    name: `OpenHands condenser, ${events} events`,
    family: 'OpenHands condenser',
    source: 'OpenHands/software-agent-sdk, LLMSummarizingCondenser (max_size 240, keep_first 2)',
    fidelity: 'bounded',
    about:
      `If a request has more than ${events} events, a summary of the size in the recording replaces the middle. ` +
      `The first ${first} events and the newest half stay. The words of the summary are unknown.`,
    rights,
    rule: (timeline) => (call, conversation) => {
      const present = withoutSystem(call).filter((item) => item.kind !== 'thinking' && !conversation.isMasked(item));
      if (present.length <= events) return undefined;
      const from = present.at(-Math.floor(events / 2))?.position ?? 0;
      const kept = new Set(withoutSystem(call).slice(0, first));
      const leave = itemsBefore(call.items.slice(0, call.visible), from).filter(
        (item) => item.kind !== 'system' && !kept.has(item),
      );
      return summarised(call, conversation, { leave, chars: summaryChars(timeline) });
    },
  });
}
