import { tokensOf } from '../../values/token-estimate.js';
import { callLine, maskingPolicy, type Rights, wholeResults } from './masking.js';
import { type ContextPolicy, charsOf, itemsOf } from './policy.js';

interface TransparentSettings {
  /** The context is compacted above this number of tokens. */
  readonly over: number;
  /** Number of newest results that stay. */
  readonly keep: number;
  readonly rights: Rights;
}

/**
 * Keeps text and drops old outputs. Each dropped output leaves a placeholder with which the model
 * can restore it.
 */
export function transparentCompact({ over, keep, rights }: TransparentSettings): ContextPolicy {
  return maskingPolicy({
    name: `transparent compact, over ${over / 1_000}k, keep ${keep}`,
    family: 'transparent compact',
    source: 'transparent-compact-pi, arXiv 2610.20116',
    fidelity: 'bounded',
    about:
      `In a request over ${over} tokens, every output but the newest ${keep} becomes a mark ` +
      `with its call, by which the model can ` +
      'get it back. All words stay.',
    reach: 'activate',
    guide: 600,
    rights,
    rule: () => (call, conversation) => {
      if (tokensOf(charsOf(conversation.parts(call))) <= over) return undefined;
      const made = new Map(
        itemsOf(call).flatMap((item) => (item.kind === 'call' ? [[item.callId, item] as const] : [])),
      );
      return {
        leave: wholeResults(call, conversation)
          .slice(0, -keep)
          .map((item) => {
            const from = made.get(item.callId);
            return { item, text: `[output ${item.index} of ${from === undefined ? 'a call' : callLine(from)} stored]` };
          }),
      };
    },
  });
}
