import type { ReportedMessage } from '../harness/message-schema.js';
import { defined } from '../values/defined.js';

const tokens = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : undefined;

/** What a harness knows of the tokens of a model's call, whatever it may be. */
export interface KnownUsage {
  readonly input?: unknown;
  readonly output?: unknown;
  readonly cacheRead?: unknown;
  readonly cacheWrite?: unknown;
  /** Blocks of thinking that the provider left out of the request. */
  readonly thinkingDropped?: unknown;
}

/** The usage of a reported message; nothing for a call of which nothing is known, such as one that was stopped. */
export function reportedUsage(usage: KnownUsage): Pick<ReportedMessage, 'usage'> {
  const [input, output] = [tokens(usage.input), tokens(usage.output)];
  const [read, written] = [tokens(usage.cacheRead), tokens(usage.cacheWrite)];
  const dropped = tokens(usage.thinkingDropped);
  if (!input && !output && !read && !written && !dropped) return {};
  return { usage: defined({ input, output, cache_read: read, cache_write: written, thinking_dropped: dropped }) };
}
