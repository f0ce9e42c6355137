import { copyOfData, sameData } from '../../values/plain-data.js';

/** A message as first seen, with its derived value. */
class SeenMessage<M, R> {
  copy: M;
  readonly made: R;

  constructor(copy: M, made: R) {
    this.copy = copy;
    this.made = made;
  }
}

/** A list compared with the previous one. */
export interface SeenList<M, R> {
  readonly made: readonly R[];
  /**
   * Returns private copies of the messages. An unchanged message has the same object in every list.
   * Unreported members are compared here, on demand.
   */
  readonly copies: () => readonly M[];
}

/** How messages are compared. */
export interface SeenOptions<M, R> {
  /** Derives a value from a copy of a message. */
  readonly make: (message: M) => R;
  /** Returns whether two messages have the same derived value. */
  readonly makesSame?: (one: M, other: M) => boolean;
}

/**
 * The last seen messages of one list. Harnesses create new lists for each model call. A message
 * with the same content at the same position is only compared, and its derived value is reused.
 */
export class SeenMessages<M, R> {
  readonly #make: (message: M) => R;
  readonly #makesSame: (one: M, other: M) => boolean;
  #seen: readonly SeenMessage<M, R>[] = [];

  constructor({ make, makesSame = sameData }: SeenOptions<M, R>) {
    this.#make = make;
    this.#makesSame = makesSame;
  }

  /**
   * Compares a list with the previous one. The list must not change before its copies were
   * requested.
   */
  of(messages: readonly M[]): SeenList<M, R> {
    const before = this.#seen;
    const seen = messages.map((message, i) => {
      const known = before[i];
      return known !== undefined && (known.copy === message || this.#makesSame(known.copy, message))
        ? known
        : this.#taken(message);
    });
    this.#seen = seen;
    let copies: readonly M[] | undefined;
    return {
      made: seen.map(({ made }) => made),
      copies: () => {
        copies ??= messages.map((message, i) => this.#copied(seen[i] as SeenMessage<M, R>, message));
        return copies;
      },
    };
  }

  #taken(message: M): SeenMessage<M, R> {
    const copy = copyOfData(message);
    return new SeenMessage(copy, this.#make(copy));
  }

  #copied(seen: SeenMessage<M, R>, message: M): M {
    if (seen.copy !== message && !sameData(seen.copy, message)) seen.copy = copyOfData(message);
    return seen.copy;
  }
}
