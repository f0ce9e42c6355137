import type { Step } from '../../objects/step.js';

/** The steps of one turn. */
export interface TurnSpan {
  readonly turn: number;
  /** Sequence numbers of its first and last step. */
  readonly first: number;
  readonly last: number;
  readonly steps: readonly Step[];
}

/** Returns the time of a turn's first step, in milliseconds since 1970. */
export const begins = ({ steps }: TurnSpan): number => steps[0]?.at ?? 0;

/** Groups a session's steps into turns, in order. */
export function turnSpans(steps: readonly Step[]): readonly TurnSpan[] {
  const turns: { turn: number; steps: Step[] }[] = [];
  for (const step of steps) {
    const running = turns.at(-1);
    if (running?.turn === step.turn) running.steps.push(step);
    else turns.push({ turn: step.turn, steps: [step] });
  }
  return turns.map(({ turn, steps: own }) => ({
    turn,
    steps: own,
    first: own[0]?.seq ?? 0,
    last: own.at(-1)?.seq ?? 0,
  }));
}

/** Formats numbers as ranges: `1-3, 7`. */
export function ranges(numbers: readonly number[]): string {
  const spans: [number, number][] = [];
  for (const n of numbers) {
    const last = spans.at(-1);
    if (last !== undefined && n === last[1] + 1) last[1] = n;
    else spans.push([n, n]);
  }
  return spans.map(([a, b]) => (a === b ? `${a}` : `${a}-${b}`)).join(', ');
}
