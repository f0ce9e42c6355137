import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';

const LIMIT_MS = 240_000;

/**
 * Asks until the answer is what is waited for. Gives up long after any machine would have got there, with the condition and the last answer, so that a test
 * that waits in vain says for what.
 */
export async function until<T>(ask: () => Promise<T> | T, isSo: (answer: T) => boolean): Promise<T> {
  const from = performance.now();
  for (;;) {
    const answer = await ask();
    if (isSo(answer)) return answer;
    if (performance.now() - from > LIMIT_MS)
      throw new Error(`Waited ${LIMIT_MS / 1_000} s for ${isSo.toString()} of ${ask.toString()}; the last answer: ${inspect(answer)}`);
    await pause(20);
  }
}
