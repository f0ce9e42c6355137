import type { ServerResponse } from 'node:http';
import pLimit from 'p-limit';
import type { QuestionKind } from './http-contract.js';
import { ApiError } from './problem.js';

/** Maximum number of running and waiting questions. */
export interface QueueCapacity {
  readonly running: number;
  readonly waiting: number;
}

/** The capacity of each kind. */
export const QUESTION_CAPACITY: Readonly<Record<QuestionKind, QueueCapacity>> = {
  short: { running: 4, waiting: 64 },
  long: { running: 1, waiting: 8 },
  stream: { running: 2, waiting: 4 },
};

/** Limits the running and waiting questions, first come, first served. */
export class QuestionQueue {
  readonly #capacity: QueueCapacity;
  readonly #limit: <T>(work: () => Promise<T>) => Promise<T>;
  #inside = 0;

  constructor(capacity: QueueCapacity) {
    this.#capacity = capacity;
    this.#limit = pLimit(capacity.running);
  }

  /**
   * Runs a question when its turn comes. If the client disconnects while the question waits, frees
   * the place and returns undefined without asking. Throws the errors of `ask`. Throws ApiError
   * `too-many-questions` at once if the queue is full.
   */
  async run<T>(ask: () => Promise<T>, gone: AbortSignal): Promise<T | undefined> {
    const { running, waiting } = this.#capacity;
    if (this.#inside >= running + waiting) {
      throw new ApiError(
        'too-many-questions',
        `${running} questions are running and ${waiting} are waiting; retry in a few seconds`,
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

/** Returns a signal that fires if the client disconnects before the answer. */
export function goneSignal(response: ServerResponse): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => {
    if (!response.writableEnded) gone.abort(new Error('the client has disconnected'));
  });
  return gone.signal;
}
