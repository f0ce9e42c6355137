import type { ReportedMessage } from '../harness/message-schema.js';
import { defined } from '../values/defined.js';

const tokens = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** A harness's token counts of a model call, not yet validated. */
export interface KnownUsage {
  readonly input?: unknown;
  readonly output?: unknown;
  readonly cacheRead?: unknown;
  readonly cacheWrite?: unknown;
  /** Number of thinking blocks that the provider dropped from the request. */
  readonly thinkingDropped?: unknown;
}

/**
 * Returns the usage for a reported message. Empty if a call has no counts, for example because it
 * was stopped.
 */
export function reportedUsage(usage: KnownUsage): Pick<ReportedMessage, 'usage'> {
  const [input, output] = [tokens(usage.input), tokens(usage.output)];
  const [read, written] = [tokens(usage.cacheRead), tokens(usage.cacheWrite)];
  const dropped = tokens(usage.thinkingDropped);
  if (!input && !output && !read && !written && !dropped) return {};
  return { usage: defined({ input, output, cache_read: read, cache_write: written, thinking_dropped: dropped }) };
}
