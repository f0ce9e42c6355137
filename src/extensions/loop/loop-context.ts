import type { RenderedMessage } from '../../assembly/render-messages.js';
import type { RecordMask } from '../../client/record-mask.js';
import type { History } from '../../harness/history-item.js';
import type { LoopEpoch, LoopInsert } from '../../harness/loop-epochs.js';
import type { SessionId } from '../../objects/ids.js';

/** How contexts of a session are rendered. A setting that is omitted does not change. */
export interface Rendering {
  /** Whether contexts follow the specification literally where that is possible (decision E8). */
  readonly strict?: boolean;
  /** Whether ids are shortened to unique prefixes (decision D6). */
  readonly shortIds?: boolean;
}

/**
 * The changes to the harness's list for the next model call. Our messages come before and after the
 * part that stays. Lines replace some results in that part.
 */
export interface LoopContext {
  readonly session: SessionId;
  /** Index in the harness's list of the first message that stays. */
  readonly from: number;
  readonly before: readonly RenderedMessage[];
  /** All messages inserted in this epoch, by rising index, at most one per index. */
  readonly inserts: readonly LoopInsert[];
  readonly after: readonly RenderedMessage[];
  /**
   * Lines that replace results, by index in the list. These results are inactive, or another part
   * of an epoch's request has their text.
   */
  readonly references: readonly { readonly index: number; readonly text: string }[];
  /** Present with layout `epoch`. */
  readonly epoch?: LoopEpoch;
  /** Number of objects in the metadata pool. */
  readonly pool: number;
  /** Number of active objects. */
  readonly active: number;
}

/**
 * Masks secrets in those results that the context leaves in the harness's list, if the mask is set
 * for answers (decision 0026).
 */
export function withMaskedResults<Context extends LoopContext | undefined>(
  context: Context,
  { items }: Pick<History, 'items'>,
  mask: RecordMask,
): Context {
  if (mask.inAnswers !== true || context === undefined) return context;
  const { from, references } = context;
  const replaced = new Set(references.map(({ index }) => index));
  const masked = items.flatMap((item) => {
    if (item.kind !== 'call' || item.index < from || replaced.has(item.index)) return [];
    const text = mask.text(item.content);
    return text === item.content ? [] : [{ index: item.index, text }];
  });
  if (masked.length === 0) return context;
  return { ...context, references: [...references, ...masked].sort((a, b) => a.index - b.index) };
}
