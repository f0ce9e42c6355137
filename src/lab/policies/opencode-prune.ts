import type { ModelCall, TimelineItem } from '../timeline/timeline.js';
import { maskingPolicy, type Rights } from './masking.js';
import { type ContextPolicy, itemsOf, type MaskedConversation } from './policy.js';

/** OpenCode's own estimate of a token. */
const CHARS_PER_TOKEN = 4;
const PLACEHOLDER = '[Old tool result content cleared]';

interface PruneSettings {
  /** Number of tokens of the newest results that stay. */
  readonly keep: number;
  /** Results are pruned only if pruning frees more tokens than this. */
  readonly least: number;
  /** Number of newest turns that are never pruned. */
  readonly turns: number;
  readonly rights: Rights;
}

/**
 * Returns the results that are cleared at the end of the previous turn: those older than the
 * protected results.
 */
function cleared(
  call: ModelCall,
  conversation: MaskedConversation,
  { keep, least, turns: protectedTurns }: PruneSettings,
): readonly TimelineItem[] {
  const items = itemsOf(call);
  // Only items before the message that opens the new turn count, because pruning runs at the end of
  // a turn.
  const last = items.findLastIndex(({ kind }) => kind === 'user');
  const found: TimelineItem[] = [];
  let [turns, passed, foundTokens] = [0, 0, 0];
  for (let at = last - 1; at >= 0; at -= 1) {
    const item = items[at];
    if (item === undefined) break;
    if (item.kind === 'user') turns += 1;
    if (turns < protectedTurns || item.kind !== 'result' || item.tool === 'skill') continue;
    // The search ends at a result that is already cleared.
    if (conversation.isMasked(item)) break;
    const tokens = Math.round(item.text.length / CHARS_PER_TOKEN);
    passed += tokens;
    if (passed <= keep) continue;
    foundTokens += tokens;
    found.push(item);
  }
  return foundTokens > least ? found : [];
}

/** OpenCode's pruning at the end of a turn, by its documented rule. */
export function opencodePrune(settings: PruneSettings): ContextPolicy {
  const { keep, least, turns } = settings;
  return maskingPolicy({
    name: `OpenCode prune, ${keep / 1_000}k`,
    family: 'OpenCode prune',
    source: 'anomalyco/opencode, session compaction: prune',
    fidelity: 'exact',
    about:
      `At the end of a turn it clears old results. It keeps the ${turns} newest turns and ${keep} tokens of results ` +
      `before them. It clears nothing unless it saves more than ${least} tokens.`,
    rights: { ...settings.rights, borders: false },
    rule: () => (call, conversation) =>
      call.opensTurn
        ? { leave: cleared(call, conversation, settings).map((item) => ({ item, text: PLACEHOLDER })) }
        : undefined,
  });
}
