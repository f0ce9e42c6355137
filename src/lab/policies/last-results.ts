import { maskingPolicy, type Rights, wholeResults } from './masking.js';
import type { ContextPolicy } from './policy.js';

/** Settings of observation masking. */
interface LastResultsSettings {
  /** Number of results that stay whole. */
  readonly keep: number;
  /** Number of older results that accumulate before they are masked together. */
  readonly step: number;
  readonly rights: Rights;
}

const lineCount = (text: string): number => text.split('\n').length;

/**
 * Observation masking: the newest results stay whole. Older results are replaced by lines, a batch
 * at a time.
 */
export function lastResults({ keep, step, rights }: LastResultsSettings): ContextPolicy {
  return maskingPolicy({
    name: step === 1 ? `last ${keep} results` : `last ${keep} results, in steps of ${step}`,
    family: 'last results',
    source: 'SWE-agent, LastNObservations; arXiv 2508.21433',
    fidelity: 'exact',
    about:
      `Results older than the newest ${keep} become a line with their ` +
      `length${step === 1 ? '' : `, ${step} at a time`}.`,
    rights,
    rule: () => (call, conversation) => {
      const whole = wholeResults(call, conversation);
      if (whole.length < keep + step) return undefined;
      return {
        leave: whole
          .slice(0, -keep)
          .map((item) => ({ item, text: `[${lineCount(item.text)} lines of output left out]` })),
      };
    },
  });
}
