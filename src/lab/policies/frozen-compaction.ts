import { tokensOf } from '../../values/token-estimate.js';
import { maskingPolicy, type Rights, wholeResults } from './masking.js';
import type { ContextPolicy } from './policy.js';

interface FrozenSettings {
  /** Tokens of whole results behind the newest ones that are compacted together. */
  readonly batch: number;
  /** Newest results that stay whole. */
  readonly keep: number;
  readonly rights: Rights;
}

/** Characters of the beginning and of the end that stay. */
const SHOWN = 400;

/** Returns a result as its beginning and its end. */
function shortened(text: string): string {
  if (text.length <= 3 * SHOWN) return text;
  return `${text.slice(0, SHOWN)}\n[${text.length - 2 * SHOWN} characters left out]\n${text.slice(-SHOWN)}`;
}

/** Frozen compactions: a batch of old results is shortened once, and then never changes again. */
export function frozenCompaction({ batch, keep, rights }: FrozenSettings): ContextPolicy {
  return maskingPolicy({
    name: `frozen compactions of ${batch / 1_000}k, keep ${keep}`,
    family: 'frozen compactions',
    source: 'rossoctl/context-guru',
    fidelity: 'bounded',
    about:
      `Once the results before the newest ${keep} have ${batch} tokens, each keeps ${SHOWN} characters of its ` +
      'beginning and end for good. The original shortens by the kind of output.',
    reach: 'activate',
    guide: 600,
    rights,
    rule: () => (call, conversation) => {
      const old = wholeResults(call, conversation).slice(0, -keep);
      if (tokensOf(old.reduce((sum, { text }) => sum + text.length, 0)) < batch) return undefined;
      return { leave: old.map((item) => ({ item, text: shortened(item.text) })) };
    },
  });
}
