import { setTimeout as delay } from 'node:timers/promises';
import type { Sample } from './results.js';

/** A compared subject. Its preparation of a round is not timed; the work that it returns is. */
export interface Contender {
  readonly name: string;
  /** `round` counts from 0, through the warm-up too. */
  prepare(round: number): Promise<() => Promise<Outcome>>;
  /**
   * Waits until the background work is done, so that it does not slow other contenders. Not timed.
   */
  settle?(outcome: Outcome): Promise<void>;
}

/** The report of a timed piece of work. */
export interface Outcome {
  /** Bytes of its answer. */
  readonly bytes?: number;
  /** Id of the call that it made. */
  readonly call?: string;
}

/** Numbers and limits of a case's rounds. */
export interface Rounds {
  readonly warmUp: number;
  readonly measured: number;
  /** Time in milliseconds after which no round begins, if three were measured. */
  readonly limitMs: number;
  /** Pause in milliseconds before each piece of work. Default: none. */
  readonly restMs?: number;
}

const FEWEST = 3;

/**
 * Returns the order of the contenders in a round. It changes with the round, so that no contender
 * always follows the same one. It is equal in every run.
 */
function orderOf(count: number, round: number): readonly number[] {
  const order = Array.from({ length: count }, (_, i) => i);
  let state = round + 1;
  for (let i = count - 1; i > 0; i--) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const j = (state >>> 16) % (i + 1);
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return order;
}

/**
 * Times contenders alternately, call by call, in another order each round. So the load of the
 * machine and the effects of earlier work are the same for all.
 */
export async function interleave(
  contenders: readonly Contender[],
  { warmUp, measured, limitMs, restMs = 0 }: Rounds,
): Promise<readonly Sample[]> {
  const times = contenders.map((): number[] => []);
  const bytes = contenders.map((): number | undefined => undefined);
  const began = performance.now();
  for (let round = 0; round < warmUp + measured; round++) {
    if (round >= warmUp + FEWEST && performance.now() - began > limitMs) break;
    for (const at of orderOf(contenders.length, round)) {
      const contender = contenders[at];
      if (contender === undefined) continue;
      const work = await contender.prepare(round);
      if (restMs > 0) await delay(restMs);
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
