import { fallOf, SHORTENING } from '../history/rebuild/counted-fall.js';
import { usedTokens } from './strip-layout.js';
import type { Strip } from './wire.js';

/** A request with a smaller count than the previous one, without a removal in the transcript. */
export interface CountedFall {
  readonly step: number;
  /** Number of the model call, from 1. */
  readonly call: number;
  readonly fewer: number;
}

/**
 * Returns the falls of the provider's count in a session that only a transcript shows. At such a
 * fall, text left the context that the transcript does not name.
 */
export function countedFalls({ calls, marks }: Pick<Strip, 'calls' | 'marks'>): readonly CountedFall[] {
  const told = marks.flatMap(({ event, step }) => (event !== null && SHORTENING.has(event) ? [step] : []));
  const falls: CountedFall[] = [];
  let before: { readonly step: number; readonly tokens: number } | undefined;
  for (const [column, call] of calls.entries()) {
    const { step, kind } = call;
    const tokens = usedTokens(call);
    if (tokens === undefined) continue;
    const from = before;
    before = { step, tokens };
    if (from === undefined || kind !== 'transcript') continue;
    const fewer = fallOf(from.tokens, tokens);
    const isTold = told.some((at) => at > from.step && at <= step);
    if (fewer > 0 && !isTold) falls.push({ step, call: column + 1, fewer });
  }
  return falls;
}
