import { withinLimit } from '../../process/within-limit.js';

/** Thrown when work took longer than a harness waits for it. */
export class LateError extends Error {
  override readonly name = 'LateError';
}

/** What work comes to; rejects with LateError after the limit. Keeps the process alive meanwhile: a harness waits for the answer. */
export function patiently<T>(work: Promise<T>, limitMs: number): Promise<T> {
  const late = (): never => {
    throw new LateError(`no answer within ${limitMs} ms`);
  };
  return withinLimit(work, limitMs, late, { keepsAlive: true });
}
