import type { ServerResponse } from 'node:http';
import pLimit from 'p-limit';
import { ApiError } from './problem.js';

/** How many questions may run and wait at once. */
export interface QueueCapacity {
  readonly running: number;
  readonly waiting: number;
}

/**
 * How costly a question is: a `short` one reads a moment, a `long` one rebuilds many contexts, a `stream` sends as slowly as it is read. Each kind has a queue of its own, so that a few long ones do
 * not keep the short ones waiting. Together they use only a part of the queries that the node runs at a time; the rest is for the sessions.
 */
export type QuestionKind = 'short' | 'long' | 'stream';

/** The capacity of each kind. */
export const QUESTION_CAPACITY: Readonly<Record<QuestionKind, QueueCapacity>> = {
  short: { running: 4, waiting: 64 },
  long: { running: 1, waiting: 8 },
  stream: { running: 2, waiting: 4 },
};

/** Lets so many questions run at once and so many wait, first come, first served. */
export class QuestionQueue {
  readonly #capacity: QueueCapacity;
  readonly #limit: <T>(work: () => Promise<T>) => Promise<T>;
  #inside = 0;

  constructor(capacity: QueueCapacity) {
    this.#capacity = capacity;
    this.#limit = pLimit(capacity.running);
  }

  /**
   * Asks when its turn comes. Whoever goes away while waiting gives its place back at once and is not asked for: undefined. Throws ApiError
   * `too-many-questions` where no place is left, at once, and what `ask` throws.
   */
  async run<T>(ask: () => Promise<T>, gone: AbortSignal): Promise<T | undefined> {
    const { running, waiting } = this.#capacity;
    if (this.#inside >= running + waiting) {
      throw new ApiError(
        'too-many-questions',
        `${running} questions are being answered and ${waiting} wait; ask again in a few seconds`,
      );
    }
    this.#inside++;
    const leave = (): void => void this.#inside--;
    gone.addEventListener('abort', leave, { once: true });
    return this.#limit(async () => {
      if (gone.aborted) return undefined;
      gone.removeEventListener('abort', leave);
      try {
        return await ask();
      } finally {
        leave();
      }
    });
  }
}

/** Fires when the client has gone before it was answered. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableEnded) gone.abort(new Error('the client has gone'));
  });
  return gone.signal;
}
