import { modelCallsOf } from '../../history/rebuild/model-calls.js';
import type { Step } from '../../objects/step.js';

/** No vocabulary has so many characters a token over a whole answer. */
const MOST_CHARS = 16;
/** A tool call has more tokens than this: its name, and the keys of its arguments. */
const LEAST_CALL = 10;

/**
 * Returns whether a count of output tokens is too small for its answer. Some transcripts have the
 * count with which a stream begins, such as 1, and never the final one.
 */
export function isTooSmall(output: number, { chars, calls }: { readonly chars: number; readonly calls: number }) {
  return chars > MOST_CHARS * Math.max(1, output) || (calls > 0 && output < LEAST_CALL);
}

/** Returns the steps of the answers whose output no provider counted. */
export function uncountedAnswers(steps: readonly Step[]): ReadonlySet<number> {
  const bySeq = new Map(steps.map((step) => [step.seq, step]));
  const answers = modelCallsOf(steps).filter(({ answer, usage }) => {
    const own = answer.flatMap((seq) => bySeq.get(seq) ?? []);
    const chars = own.reduce((sum, { message }) => sum + (message?.text.length ?? 0), 0);
    const calls = own.filter(({ call }) => call !== undefined).length;
    return usage?.output !== undefined && isTooSmall(usage.output, { chars, calls });
  });
  return new Set(answers.flatMap(({ answer }) => answer));
}
