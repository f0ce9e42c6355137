import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';
import type { Decision } from './masking.js';
import { charsOf, itemsOf, type MaskedConversation } from './policy.js';

/**
 * Size, in characters, of summaries in recordings that have none: the median over other recordings.
 */
const USUAL_SUMMARY = 9_000;

/** Returns the size of a session's summaries: the median of its own, or the usual size. */
export function summaryChars({ compactions }: Timeline): number {
  const sizes = compactions.flatMap(({ summary }) => (summary === '' ? [] : [summary.length])).sort((a, b) => a - b);
  return sizes[Math.floor(sizes.length / 2)] ?? USUAL_SUMMARY;
}

/**
 * Returns the decision to replace items by a summary. The summary's words are unknown, so no needed
 * line is found in it. The call that writes the summary reads the whole context.
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

/** Returns the items of a call that a summary may replace: all but the system prompt. */
export const withoutSystem = (call: ModelCall): readonly TimelineItem[] =>
  itemsOf(call).filter(({ kind }) => kind !== 'system');
