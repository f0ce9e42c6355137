import { modelCallsOf } from '../../history/rebuild/model-calls.js';
import type { Step } from '../../objects/step.js';

/** Maximum characters per token of a whole answer. No vocabulary exceeds it. */
const MOST_CHARS = 16;
/** Minimum tokens of a tool call: its name, and the keys of its arguments. */
const LEAST_CALL = 10;

/**
 * Returns whether a count of output tokens is too small for its answer. Some transcripts contain
 * only the count from the start of a stream, such as 1, and not the final count.
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
