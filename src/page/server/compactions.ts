import type { RequestReader } from '../../history/ask/request-reader.js';
import type { Step } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import { describe } from './described-objects.js';

/** A message or call that a compaction left out of the model's requests. */
export interface DroppedEntry {
  readonly step: number;
  readonly turn: number;
  readonly name: string;
  readonly object?: string;
  readonly chars: number;
}

/** A compaction of the harness's history: its summary, and the entries that this replaces. */
export interface Compaction {
  readonly step: number;
  readonly turn: number;
  /** The harness's own text. Undefined if it recorded none. */
  readonly summary?: string;
  /** Entries that the harness reported as dropped. Undefined if it reported none. */
  readonly reported?: number;
  /** The messages and calls since the compaction before, oldest first. */
  readonly dropped: readonly DroppedEntry[];
}

const isCompaction = ({ event }: Step): boolean => event?.kind === 'compacted';

/**
 * Returns the last compaction among the steps after `from` and up to `to`, with the entries that it
 * replaced.
 */
export async function compactionBetween(
  { timeline, steps }: Pick<RequestReader, 'timeline' | 'steps'>,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<Compaction | undefined> {
  const found = steps.findLast((step) => step.seq > from && step.seq <= to && isCompaction(step));
  if (found?.event === undefined) return undefined;
  const before = steps.findLast((step) => step.seq < found.seq && isCompaction(step))?.seq ?? 0;
  const left = steps.filter(({ seq }) => seq > before && seq < found.seq);
  const named = await describe(
    timeline,
    left.flatMap(({ call }) => call?.id ?? []),
  );
  const { detail, missing, kept = 0 } = found.event;
  return {
    step: found.seq,
    turn: found.turn,
    ...defined({ summary: detail, reported: missing }),
    dropped: left.slice(kept).flatMap(({ seq, turn, message, call }): readonly DroppedEntry[] => {
      if (message !== undefined) return [{ step: seq, turn, name: message.role, chars: message.text.length }];
      const metadata = call === undefined ? undefined : named.get(call.id);
      if (call === undefined || metadata === undefined) return [];
      return [{ step: seq, turn, name: metadata.name, object: call.id, chars: metadata.charCount }];
    }),
  };
}
