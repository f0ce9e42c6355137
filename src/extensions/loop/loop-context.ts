import type { RenderedMessage } from '../../assembly/render-messages.js';
import type { RecordMask } from '../../client/record-mask.js';
import type { History } from '../../harness/history-item.js';
import type { LoopEpoch, LoopInsert } from '../../harness/loop-epochs.js';
import type { SessionId } from '../../objects/ids.js';

/** How the contexts of a session are rendered. Omitted settings keep their previous value. */
export interface Rendering {
  /** Whether contexts follow the SSOT's letter where that is possible (decision E8). */
  readonly strict?: boolean;
  /** Whether the shortest unique id prefixes are used (decision D6). */
  readonly shortIds?: boolean;
}

/**
 * The changes to the harness's list for the next model call: our messages around the part that
 * stays, and lines that replace results in it.
 */
export interface LoopContext {
  readonly session: SessionId;
  /** Index in the list at which the part that stays begins. */
  readonly from: number;
  readonly before: readonly RenderedMessage[];
  /** All inserts of the epoch so far, by rising index, at most one per index. */
  readonly inserts: readonly LoopInsert[];
  readonly after: readonly RenderedMessage[];
  /**
   * Replacements of results that are inactive, or whose text is elsewhere in an epoch's request, by
   * index in the list.
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
 * Returns a context in which results with secrets are replaced by their text with marks, if the
 * mask is set for answers (decision 0026).
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
