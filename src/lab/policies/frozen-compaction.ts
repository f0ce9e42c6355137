import { tokensOf } from '../../values/token-estimate.js';
import { maskingPolicy, type Rights, wholeResults } from './masking.js';
import type { ContextPolicy } from './policy.js';

interface FrozenSettings {
  /** Results beyond the newest `keep` are shortened together once they have this many tokens. */
  readonly batch: number;
  /** Number of newest results that stay whole. */
  readonly keep: number;
  readonly rights: Rights;
}

/** Characters that stay at each end of a shortened result. */
const SHOWN = 400;

/** Returns a result shortened to its beginning and its end. */
function shortened(text: string): string {
  if (text.length <= 3 * SHOWN) return text;
  return `${text.slice(0, SHOWN)}\n[${text.length - 2 * SHOWN} characters left out]\n${text.slice(-SHOWN)}`;
}

/** Frozen compaction: shortens each batch of old results once and never changes it again. */
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
