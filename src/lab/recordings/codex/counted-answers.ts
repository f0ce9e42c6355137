import type { EntryQueue, HeldEntry } from '../entries/entry-queue.js';
import type { EntryCommon } from '../entries/fields.js';
import type { EntryOf } from '../neutral-session.js';

type Message = EntryOf<'message'>;

/**
 * The answers of a model with their token counts. Codex writes the count after the answer's message
 * and calls, in some versions even after their results. So an answer waits for its count. An answer
 * of calls alone gets a message without text, which carries the count.
 */
export class CountedAnswers {
  readonly #queue: EntryQueue;
  #open: HeldEntry<'message'> | undefined;
  /** Whether results came after the open answer: the next item of the model begins another one. */
  #isAnswered = false;
  /** Whether the recording has shown counts. */
  #isCounted = false;
  /** Whether the recording is of a version that may write counts. */
  mayCount = false;

  constructor(queue: EntryQueue) {
    this.#queue = queue;
  }

  /** Queues a message of the model. Another message of the same answer takes over the count. */
  message(message: Message): void {
    this.end();
    this.#open = this.#queue.hold<'message'>(message);
  }

  /**
   * Opens an answer for a call, unless its message did. The empty message stays without a count,
   * because the beginning of a recording must give the same entries as the whole.
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

  /** Notes a result of the open answer's calls. */
  result(): void {
    this.#isAnswered = true;
  }

  /** Gives the open answer its count. Returns false if there is none. */
  count(usage: NonNullable<Message['usage']>): boolean {
    this.#isCounted = true;
    const isTaken = this.#open?.update({ usage }) === true;
    this.end();
    return isTaken;
  }

  /** Releases the open answer, with a count or without. */
  end(): void {
    this.#open?.release();
    this.#open = undefined;
    this.#isAnswered = false;
  }

  /**
   * Lets the open answer leave while the file rests, if the recording has shown no counts. The
   * answer stays open, so that its calls get no message of their own.
   */
  rest(): void {
    if (!this.#isCounted) this.#open?.release();
  }
}
