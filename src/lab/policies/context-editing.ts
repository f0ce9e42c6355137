import { tokensOf } from '../../values/token-estimate.js';
import { maskingPolicy, type Rights, wholeResults } from './masking.js';
import { type ContextPolicy, charsOf } from './policy.js';

/** Parameters of `clear_tool_uses_20250919`, in tokens. */
interface ContextEditingSettings {
  readonly over: number;
  readonly keep: number;
  /** Minimum number of tokens that a clearing must free. */
  readonly least: number;
  readonly rights: Rights;
}

/** Anthropic's context editing: the provider clears old results, and reasoning stays valid. */
export function contextEditing({ over, keep, least, rights }: ContextEditingSettings): ContextPolicy {
  const freed = least === 0 ? '' : `, at least ${least / 1_000}k`;
  return maskingPolicy({
    name: `context editing, over ${over / 1_000}k, keep ${keep}${freed}`,
    family: 'context editing',
    source: 'Anthropic API, clear_tool_uses_20250919 (its clear_tool_inputs is the right "arguments")',
    fidelity: 'bounded',
    about:
      `The provider clears all results but the newest ${keep} from a request over ${over} tokens. The text of its ` +
      'placeholder is ours.',
    keepsReasoning: true,
    rights,
    rule: () => (call, conversation) => {
      if (tokensOf(charsOf(conversation.parts(call))) <= over) return undefined;
      const old = wholeResults(call, conversation).slice(0, -keep);
      if (tokensOf(old.reduce((sum, { text }) => sum + text.length, 0)) < least) return undefined;
      return { leave: old.map((item) => ({ item, text: '[cleared to save context]' })) };
    },
  });
}
