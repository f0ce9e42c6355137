import { setTimeout as delay } from 'node:timers/promises';
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
  /** How long all of them rest before each piece of work; not at all if left out. */
  readonly restMs?: number;
}

const FEWEST = 3;

/** The order of a round: another one each time, so that nobody always comes behind the same one. The same in every run. */
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
 * Times contenders call by call in turn, in another order each round, so that whatever else the machine does, and what the one before has left, meets all of them alike.
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
