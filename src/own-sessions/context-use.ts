import * as z from 'zod';
import type { RecordedEntry } from '../lab/recordings/neutral-session.js';
import { type NeededLines, neededLines } from '../lab/timeline/needed-lines.js';
import type { Timeline, TimelineItem } from '../lab/timeline/timeline.js';
import { TimelineBuilder } from '../lab/timeline/timeline-builder.js';
import { tokensOf } from '../values/token-estimate.js';

const usedTokensSchema = z.object({
  /** Estimated tokens of tool results. Each result is counted once. */
  tokens: z.number(),
  /** Tokens of those results that no later answer used. */
  unused: z.number(),
});

/**
 * The tokens of tool results in requests, and how many of them answers used. Tokens are estimates.
 */
export const contextUseSchema = usedTokensSchema.extend({
  /** Tokens of tool results, summed over all requests. */
  sent: z.number(),
  sentUnused: z.number(),
  tools: z.record(z.string(), usedTokensSchema),
});
export type ContextUse = z.output<typeof contextUseSchema>;

/** Returns a sum of zero. */
export const nothingUsed = (): ContextUse => ({ tokens: 0, unused: 0, sent: 0, sentUnused: 0, tools: {} });

/** Adds one sum to another. */
export function addUse(sum: ContextUse, use: ContextUse): void {
  sum.tokens += use.tokens;
  sum.unused += use.unused;
  sum.sent += use.sent;
  sum.sentUnused += use.sentUnused;
  const tools = new Map(Object.entries(sum.tools));
  for (const [tool, { tokens, unused }] of Object.entries(use.tools)) {
    const known = tools.get(tool) ?? { tokens: 0, unused: 0 };
    tools.set(tool, { tokens: known.tokens + tokens, unused: known.unused + unused });
  }
  sum.tools = Object.fromEntries(tools);
}

function usedItems(lines: NeededLines): ReadonlySet<TimelineItem> {
  return new Set(lines.flatMap((needed) => needed.flatMap(({ holders }) => holders)));
}

/**
 * Returns how much of the tool results a session's answers used. A result is used if a later answer
 * has one of its lines, of at least 24 characters, in its text or arguments.
 */
function useIn(timeline: Timeline): ContextUse {
  const used = usedItems(neededLines(timeline));
  const use = nothingUsed();
  for (const item of timeline.items) {
    if (item.kind !== 'result') continue;
    const tokens = tokensOf(item.text.length);
    const unused = used.has(item) ? 0 : tokens;
    addUse(use, { ...nothingUsed(), tokens, unused, tools: { [item.tool ?? '']: { tokens, unused } } });
  }
  for (const { items, visible } of timeline.calls) {
    for (let at = 0; at < visible; at += 1) {
      const item = items[at];
      if (item?.kind !== 'result') continue;
      const tokens = tokensOf(item.text.length);
      use.sent += tokens;
      if (!used.has(item)) use.sentUnused += tokens;
    }
  }
  return use;
}

/** Collects the entries of a recording in order, and computes what its answers used. */
export class UseCollector {
  readonly #builders = new Map<string, TimelineBuilder>();

  take(entry: RecordedEntry): void {
    if (entry.kind === 'session') this.#builders.set(entry.native_id, new TimelineBuilder(entry, undefined));
    else this.#builders.get(entry.session)?.take(entry);
  }

  finish(): ContextUse {
    const use = nothingUsed();
    for (const builder of this.#builders.values()) addUse(use, useIn(builder.finish('')));
    return use;
  }
}
