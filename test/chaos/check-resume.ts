import type { FoundSession, Line } from './acknowledged.js';

/**
 * Returns the acknowledged lines after step `since` that a new process did not find in a session.
 */
export function missingSteps({ session, seq, since, steps }: FoundSession, told: readonly Line[]): readonly string[] {
  const problems: string[] = [];
  steps.forEach((step, i) => {
    if (step.seq !== since + i + 1) problems.push(`${session}: step ${step.seq} follows step ${since + i}`);
  });
  if (seq !== since + steps.length)
    problems.push(`${session}: held at step ${seq}, stored up to step ${since + steps.length}`);
  const bySeq = new Map(steps.map((step) => [step.seq, step]));
  const byCall = new Map(steps.flatMap((step) => (step.call === undefined ? [] : [[step.call, step] as const])));
  for (const line of told) {
    if (line.kind === 'call' && line.session === session) {
      const step = byCall.get(line.id);
      if (step === undefined)
        problems.push(`${session}: call ${line.id} (step ${line.seq ?? '?'}) is lost; the session ends at step ${seq}`);
      else if (step.answer !== line.answer) problems.push(`${session}: call ${line.id} has another answer`);
      else if (line.seq !== undefined && step.seq !== line.seq)
        problems.push(`${session}: call ${line.id} is step ${step.seq}, not ${line.seq}`);
    }
    if (line.kind === 'message' && line.session === session) {
      if (bySeq.get(line.seq)?.message !== line.text)
        problems.push(`${session}: the message of step ${line.seq} is lost`);
    }
  }
  return problems;
}
