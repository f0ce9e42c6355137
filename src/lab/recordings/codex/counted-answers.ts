import type { EntryQueue, HeldEntry } from '../entries/entry-queue.js';
import type { EntryCommon } from '../entries/fields.js';
import type { EntryOf } from '../neutral-session.js';

type Message = EntryOf<'message'>;

/**
 * Assigns token counts to the model's answers. Codex writes the count after an answer's message and
 * calls, in some versions even after their results. So an answer is held back until its count is
 * read. An answer that only has calls gets an empty message, which carries the count.
 */
export class CountedAnswers {
  readonly #queue: EntryQueue;
  #open: HeldEntry<'message'> | undefined;
  /** Whether a result followed the open answer. Then the model's next item begins a new answer. */
  #isAnswered = false;
  /** Whether the recording has had a count so far. */
  #isCounted = false;
  /** Whether the recording is of a version that may write counts. */
  mayCount = false;

  constructor(queue: EntryQueue) {
    this.#queue = queue;
  }

  /** Queues a message of the model. It becomes the open answer, which gets the next count. */
  message(message: Message): void {
    this.end();
    this.#open = this.#queue.hold<'message'>(message);
  }

  /**
   * Opens an answer for a call, unless one is open. Its empty message is kept even if no count
   * follows, so that reading only the beginning of a recording gives the same entries.
   */
  call(common: EntryCommon): void {
    if (this.#isAnswered) this.end();
    if (this.#open !== undefined || !this.mayCount) return;
    const { native_id: _ofCall, ...where } = common;
    this.#open = this.#queue.hold<'message'>({
      kind: 'message',
      ...where,
      role: 'assistant',
      origin: 'model',
      text: '',
    });
  }

  /** Records that a result followed the open answer. */
  result(): void {
    this.#isAnswered = true;
  }

  /** Sets the open answer's count. Returns false if no answer is open. */
  count(usage: NonNullable<Message['usage']>): boolean {
    this.#isCounted = true;
    const isTaken = this.#open?.update({ usage }) === true;
    this.end();
    return isTaken;
  }

  /** Ends the open answer and releases its message. */
  end(): void {
    this.#open?.release();
    this.#open = undefined;
    this.#isAnswered = false;
  }

  /**
   * Releases the open answer's message at the current end of a growing file, unless the recording
   * has counts. The answer stays open, so that its calls do not begin a new one.
   */
  rest(): void {
    if (!this.#isCounted) this.#open?.release();
  }
}
