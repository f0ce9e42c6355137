import type { Timeline, TimelineItem } from '../timeline/timeline.js';
import { type ContextPolicy, itemsOf, MaskedConversation, type PolicyRequest } from './policy.js';

/** How last-N masking is done. */
interface LastResultsSettings {
  /** Results that stay whole. */
  readonly keep: number;
  /** How many may be whole beyond that before they are masked together; 1 masks one with every result. */
  readonly step: number;
}

const lineCount = (text: string): number => text.split('\n').length;
/** What stands for a result: that it was there, and how long it was. */
const placeholder = ({ text }: TimelineItem): string => `[${lineCount(text)} lines of output left out]`;

/** Observation masking: the newest results stay, older ones become a line, together with as many others as a step has. */
export function lastResults({ keep, step }: LastResultsSettings): ContextPolicy {
  return {
    name: step === 1 ? `last ${keep} results` : `last ${keep} results, in steps of ${step}`,
    family: 'peer',
    about: `Results older than the newest ${keep} become a line that says how long they were${step === 1 ? '' : `, ${step} at a time`}.`,
    reach: 'none',
    *requests({ calls }: Timeline): Iterable<PolicyRequest> {
      const conversation = new MaskedConversation();
      for (const call of calls) {
        const whole = itemsOf(call).filter((item) => item.kind === 'result' && !conversation.isMasked(item));
        if (whole.length >= keep + step)
          for (const item of whole.slice(0, -keep)) conversation.mask(item, placeholder(item));
        yield { parts: conversation.parts(call) };
      }
    },
  };
}
