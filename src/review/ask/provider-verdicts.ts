import { promptTokens } from '../../history/rebuild/model-calls.js';
import type { ModelUsage } from '../../objects/step.js';
import { defined } from '../../values/defined.js';
import type { RequestPiece } from './request-pieces.js';

/**
 * The tokens that the provider read from its cache for a request, and our upper estimate of them.
 */
export interface CacheVerdict {
  readonly read: number;
  /** The provider's count of the previous request, less the tokens after the first difference. */
  readonly expected: number;
  readonly verdict: 'agrees' | 'read-less' | 'read-more';
}

/**
 * The provider's reason why its cache lacked the whole previous request, and the difference that we
 * found.
 */
export interface MissVerdict {
  /** The reason in the provider's words. */
  readonly reason: string;
  /** Tokens that the cache would have held without the miss. */
  readonly tokens?: number;
  /** The section with the difference that we found; undefined if we found none. */
  readonly expected: string | undefined;
  /** `unknown`: the provider compared nothing. */
  readonly verdict: 'agrees' | 'differs' | 'unknown';
}

/**
 * Thinking that the provider dropped from a request but not from the previous one. Compared with
 * our count of the answers that lost their thinking.
 */
export interface ThinkingVerdict {
  /** Number of blocks of thinking. */
  readonly dropped: number;
  readonly lost: number;
  readonly verdict: 'agrees' | 'dropped-none' | 'dropped-more';
}

/**
 * The provider's statements about a request, compared with ours. A statement that the provider did
 * not make is undefined.
 */
export interface ProviderVerdicts {
  readonly cache: CacheVerdict | undefined;
  readonly miss: MissVerdict | undefined;
  readonly thinking: ThinkingVerdict | undefined;
}

/** The facts of two consecutive requests that the verdicts depend on. */
export interface NextRequest {
  readonly before: ModelUsage | undefined;
  readonly after: ModelUsage | undefined;
  /** Tokens of the first request after the first difference. */
  readonly behind: number;
  /**
   * The part with the first difference. Undefined if the second request begins with the whole
   * first.
   */
  readonly differs: RequestPiece['section'] | undefined;
  /** Answers that lost their reasoning by our count; undefined if unknown. */
  readonly lost: number | undefined;
}

/**
 * Approximate size of a provider's cache block in tokens. The provider counts with its own
 * vocabulary.
 */
const CACHE_BLOCK = 1_024;
const TOLERANCE = 0.1;

function cacheVerdict({ before, after, behind }: NextRequest): CacheVerdict | undefined {
  if (before === undefined || after?.cacheRead === undefined) return undefined;
  const whole = promptTokens(before);
  if (whole === 0) return undefined;
  const { cacheRead: read } = after;
  const expected = Math.max(0, whole - behind);
  const off = read - expected;
  const verdict = Math.abs(off) <= CACHE_BLOCK + TOLERANCE * whole ? 'agrees' : off < 0 ? 'read-less' : 'read-more';
  return { read, expected, verdict };
}

/** Reasons of a provider that do not name a difference. */
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
  // A dropped block that stays in the list is dropped and reported again.
  const dropped = Math.max(0, after.thinkingDropped - (before?.thinkingDropped ?? 0));
  const verdict = dropped > 0 === lost > 0 ? 'agrees' : dropped > 0 ? 'dropped-more' : 'dropped-none';
  return { dropped, lost, verdict };
}

/** Compares the provider's statements about a request with ours. */
export const providerVerdicts = (next: NextRequest): ProviderVerdicts => ({
  cache: cacheVerdict(next),
  miss: missVerdict(next),
  thinking: thinkingVerdict(next),
});
