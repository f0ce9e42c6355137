import type { Sample } from './results.js';

/** Something to be timed: makes ready for a round, untimed, and gives back what is timed. */
export interface Contender {
  readonly name: string;
  /** `round` counts from 0, through the warm-up too. */
  prepare(round: number): Promise<() => Promise<Outcome>>;
  /** Waits, untimed, for what the work left behind, so that it burdens no one else. */
  settle?(outcome: Outcome): Promise<void>;
}

/** What a timed piece of work tells of itself. */
export interface Outcome {
  /** Bytes of its answer. */
  readonly bytes?: number;
  /** The object of the call that it made. */
  readonly call?: string;
}

/** How long a case goes on. */
export interface Rounds {
  readonly warmUp: number;
  readonly measured: number;
  /** After so long no further round begins, once three were measured. */
  readonly limitMs: number;
}

const FEWEST = 3;

/**
 * Times contenders call by call in turn, the order shifted by one each round, so that whatever else the machine does meets all of them alike.
 */
export async function interleave(contenders: readonly Contender[], { warmUp, measured, limitMs }: Rounds): Promise<readonly Sample[]> {
  const times = contenders.map((): number[] => []);
  const bytes = contenders.map((): number | undefined => undefined);
  const began = performance.now();
  for (let round = 0; round < warmUp + measured; round++) {
    if (round >= warmUp + FEWEST && performance.now() - began > limitMs) break;
    for (let i = 0; i < contenders.length; i++) {
      const at = (i + round) % contenders.length;
      const contender = contenders[at];
      if (contender === undefined) continue;
      const work = await contender.prepare(round);
      const started = performance.now();
      const outcome = await work();
      const took = performance.now() - started;
      if (round >= warmUp) times[at]?.push(took);
      bytes[at] = outcome.bytes ?? bytes[at];
      await contender.settle?.(outcome);
    }
  }
  return contenders.map(({ name }, i) => {
    const answerBytes = bytes[i];
    return { name, ms: times[i] ?? [], ...(answerBytes === undefined ? {} : { answerBytes }) };
  });
}
