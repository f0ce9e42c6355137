import type { ModelUsage } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import type { RequestPiece } from './request-pieces.js';

/** What the provider read from its cache for a request, beside what it could have read by our account, in tokens. */
export interface CacheVerdict {
  readonly read: number;
  /** The whole request before it, as the provider counted it, without what stands behind the first difference. */
  readonly expected: number;
  readonly verdict: 'agrees' | 'read-less' | 'read-more';
}

/** What the provider named as the reason that its cache did not have the whole request before, beside what differs by our account. */
export interface MissVerdict {
  /** In the provider's own word. */
  readonly reason: string;
  /** How many tokens it would have had otherwise. */
  readonly tokens?: number;
  /** The word for what differs by our account; undefined where nothing does. */
  readonly expected: string | undefined;
  /** `unknown`: the provider compared nothing. */
  readonly verdict: 'agrees' | 'differs' | 'unknown';
}

/** Thinking that the provider left out of a request and not of the one before it, beside the answers that lost theirs by our account. */
export interface ThinkingVerdict {
  /** Blocks. */
  readonly dropped: number;
  readonly lost: number;
  readonly verdict: 'agrees' | 'dropped-none' | 'dropped-more';
}

/** What a provider said of a request, and whether it agrees; undefined where it said nothing of it. */
export interface ProviderVerdicts {
  readonly cache: CacheVerdict | undefined;
  readonly miss: MissVerdict | undefined;
  readonly thinking: ThinkingVerdict | undefined;
}

/** Two requests of which the second is the next one after the first, as far as their verdicts depend on it. */
export interface NextRequest {
  readonly before: ModelUsage | undefined;
  readonly after: ModelUsage | undefined;
  /** Tokens of the first behind the first difference. */
  readonly behind: number;
  /** Where that stands; undefined where the second begins with the whole first. */
  readonly differs: RequestPiece['section'] | undefined;
  /** Answers that lost their reasoning by our account; undefined where nobody can say. */
  readonly lost: number | undefined;
}

/** A provider's cache has blocks of so many tokens, about, and counts by another vocabulary. */
const CACHE_BLOCK = 1_024;
const TOLERANCE = 0.1;

const requestTokens = ({ input = 0, cacheRead = 0, cacheWrite = 0 }: ModelUsage): number =>
  input + cacheRead + cacheWrite;

function cacheVerdict({ before, after, behind }: NextRequest): CacheVerdict | undefined {
  if (before === undefined || after?.cacheRead === undefined) return undefined;
  const whole = requestTokens(before);
  if (whole === 0) return undefined;
  const { cacheRead: read } = after;
  const expected = Math.max(0, whole - behind);
  const off = read - expected;
  const verdict = Math.abs(off) <= CACHE_BLOCK + TOLERANCE * whole ? 'agrees' : off < 0 ? 'read-less' : 'read-more';
  return { read, expected, verdict };
}

/** Reasons of a provider that say nothing of what differs. */
const NOT_COMPARED: ReadonlySet<string> = new Set(['previous_message_not_found', 'unavailable']);

function missVerdict({ after, differs }: NextRequest): MissVerdict | undefined {
  if (after?.cacheMiss === undefined) return undefined;
  const { reason, tokens } = after.cacheMiss;
  const expected = differs === undefined ? undefined : differs === 'system' ? 'system_changed' : 'messages_changed';
  const verdict = NOT_COMPARED.has(reason) ? 'unknown' : reason === expected ? 'agrees' : 'differs';
  return { reason, ...defined({ tokens }), expected, verdict };
}

function thinkingVerdict({ before, after, lost }: NextRequest): ThinkingVerdict | undefined {
  if (after?.thinkingDropped === undefined || lost === undefined) return undefined;
  // A block that stays in the list is left out, and told, again.
  const dropped = Math.max(0, after.thinkingDropped - (before?.thinkingDropped ?? 0));
  const verdict = dropped > 0 === lost > 0 ? 'agrees' : dropped > 0 ? 'dropped-more' : 'dropped-none';
  return { dropped, lost, verdict };
}

/** What the provider said of a request beside our account of it. */
export const providerVerdicts = (next: NextRequest): ProviderVerdicts => ({
  cache: cacheVerdict(next),
  miss: missVerdict(next),
  thinking: thinkingVerdict(next),
});
