import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';

const LIMIT_MS = 240_000;

/**
 * Polls until the answer fulfils the condition. Gives up far beyond the time of any machine, with
 * the condition and the last answer in the error.
 */
export async function until<T>(ask: () => Promise<T> | T, isSo: (answer: T) => boolean): Promise<T> {
  const from = performance.now();
  for (;;) {
    const answer = await ask();
    if (isSo(answer)) return answer;
    if (performance.now() - from > LIMIT_MS)
      throw new Error(
        `Waited ${LIMIT_MS / 1_000} s for ${isSo.toString()} of ${ask.toString()}; the last answer: ${inspect(answer)}`,
      );
    await pause(20);
  }
}
