import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';
import { type ContextPolicy, itemsOf, MaskedConversation, type PolicyRequest } from './policy.js';

/**
 * Tokens of newest results that stay, and the minimum that a pruning must save, as OpenCode
 * documents them.
 */
const PROTECTED_TOKENS = 40_000;
const LEAST_TOKENS = 20_000;
/** Number of newest turns that are never pruned. */
const PROTECTED_TURNS = 2;
/** OpenCode's own estimate. */
const CHARS_PER_TOKEN = 4;
const PLACEHOLDER = '[Old tool result content cleared]';

/**
 * Returns the results that are cleared at the end of the turn before a call: those older than the
 * protected ones.
 */
function cleared(call: ModelCall, conversation: MaskedConversation): readonly TimelineItem[] {
  const items = itemsOf(call);
  // The message that opens the new turn did not exist when the turn before it ended.
  const last = items.findLastIndex(({ kind }) => kind === 'user');
  const found: TimelineItem[] = [];
  let [turns, passed, foundTokens] = [0, 0, 0];
  for (let at = last - 1; at >= 0; at -= 1) {
    const item = items[at];
    if (item === undefined) break;
    if (item.kind === 'user') turns += 1;
    if (turns < PROTECTED_TURNS || item.kind !== 'result' || item.tool === 'skill') continue;
    // A result that was cleared before ends the search.
    if (conversation.isMasked(item)) break;
    const tokens = Math.round(item.text.length / CHARS_PER_TOKEN);
    passed += tokens;
    if (passed <= PROTECTED_TOKENS) continue;
    foundTokens += tokens;
    found.push(item);
  }
  return foundTokens > LEAST_TOKENS ? found : [];
}

/**
 * OpenCode's pruning by its documented rule. At the end of a turn, results older than 40,000 tokens
 * of newer results are cleared if that saves 20,000.
 */
export const opencodePrune: ContextPolicy = {
  name: 'OpenCode prune',
  family: 'peer',
  about:
    'At the end of a turn it clears results older than the two newest turns and than 40,000 tokens of newer ' +
    'results, if that clears over 20,000.',
  reach: 'none',
  *requests({ calls }: Timeline): Iterable<PolicyRequest> {
    const conversation = new MaskedConversation();
    for (const call of calls) {
      if (call.opensTurn) for (const item of cleared(call, conversation)) conversation.mask(item, PLACEHOLDER);
      yield { parts: conversation.parts(call) };
    }
  },
};
