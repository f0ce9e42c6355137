import type { Timeline, TimelineItem } from '../timeline/timeline.js';
import { type ContextPolicy, itemsOf, MaskedConversation, type PolicyRequest } from './policy.js';

/** Settings of last-N masking. */
interface LastResultsSettings {
  /** Number of results that stay whole. */
  readonly keep: number;
  /**
   * Number of further results that accumulate before they are masked together; 1 masks one with
   * every result.
   */
  readonly step: number;
}

const lineCount = (text: string): number => text.split('\n').length;
/** Returns the placeholder of a result with its length. */
const placeholder = ({ text }: TimelineItem): string => `[${lineCount(text)} lines of output left out]`;

/**
 * Observation masking: the newest results stay, and older ones become a line, one step of results
 * at a time.
 */
export function lastResults({ keep, step }: LastResultsSettings): ContextPolicy {
  return {
    name: step === 1 ? `last ${keep} results` : `last ${keep} results, in steps of ${step}`,
    family: 'peer',
    about:
      `Results older than the newest ${keep} become a line with their ` +
      `length${step === 1 ? '' : `, ${step} at a time`}.`,
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
