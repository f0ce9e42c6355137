/** Minimum meaningful fall of a provider's count, in tokens. Rounding causes smaller ones. */
export const LEAST_COUNTED = 1_024;

/** The kinds of history events that explain a shorter request. */
export const SHORTENING: ReadonlySet<string> = new Set(['compacted', 'shortened', 'diverged']);

/** Returns how many tokens fewer the provider counted for a prompt than for the previous prompt. */
export const fallOf = (before: number, prompt: number): number =>
  before - prompt < LEAST_COUNTED ? 0 : before - prompt;

/** A request with a smaller count than the previous one, without a removal in the transcript. */
export interface CountedFall {
  readonly step: number;
  /** Number of the model call, from 1. */
  readonly call: number;
  readonly fewer: number;
}

/** A request with the tokens that its provider counted; undefined without a count. */
interface CountedRequest {
  /** Its kind as a context: `sent`, `transcript` or `unseen`. */
  readonly kind: string;
  readonly step: number;
  readonly tokens: number | undefined;
}

/**
 * Returns the falls of the provider's count among those requests of a session that only a
 * transcript shows. At a fall, the transcript does not show what left the context. `shortened` has
 * the steps of events that explain a shorter request.
 */
export function countedFalls(
  requests: readonly CountedRequest[],
  shortened: readonly number[],
): readonly CountedFall[] {
  const falls: CountedFall[] = [];
  let before: { readonly step: number; readonly tokens: number } | undefined;
  for (const [column, { step, kind, tokens }] of requests.entries()) {
    if (tokens === undefined) continue;
    const from = before;
    before = { step, tokens };
    if (from === undefined || kind !== 'transcript') continue;
    const fewer = fallOf(from.tokens, tokens);
    const isTold = shortened.some((at) => at > from.step && at <= step);
    if (fewer > 0 && !isTold) falls.push({ step, call: column + 1, fewer });
  }
  return falls;
}
