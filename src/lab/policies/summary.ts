import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';
import type { Decision } from './masking.js';
import { charsOf, itemsOf, type MaskedConversation } from './policy.js';

/** Median characters of recorded summaries, used where a recording has none. */
const USUAL_SUMMARY = 9_000;

/** Returns the size of a session's summaries: the median of its own, or the usual size. */
export function summaryChars({ compactions }: Timeline): number {
  const sizes = compactions.flatMap(({ summary }) => (summary === '' ? [] : [summary.length])).sort((a, b) => a - b);
  return sizes[Math.floor(sizes.length / 2)] ?? USUAL_SUMMARY;
}

/**
 * Returns the decision that a summary replaces items. Its words are unknown, so it holds no needed
 * line. The call that writes it reads the whole context.
 */
export function summarised(
  call: ModelCall,
  conversation: MaskedConversation,
  { leave, chars }: { readonly leave: readonly TimelineItem[]; readonly chars: number },
): Decision | undefined {
  const gone = leave.filter((item) => !conversation.isMasked(item));
  if (gone.length === 0) return undefined;
  return {
    leave: gone.map((item) => ({ item, text: undefined })),
    summary: `[summary before call ${call.index}]`.padEnd(chars, '.'),
    summarised: { read: charsOf(conversation.parts(call)), written: chars },
  };
}

/** Returns the items of a call whose kinds a summary may replace. */
export const withoutSystem = (call: ModelCall): readonly TimelineItem[] =>
  itemsOf(call).filter(({ kind }) => kind !== 'system');
