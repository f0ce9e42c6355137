import { copyOfData, sameData } from '../../values/plain-data.js';

/** A message as it was first seen, with the value derived from it. */
class SeenMessage<M, R> {
  copy: M;
  readonly made: R;

  constructor(copy: M, made: R) {
    this.copy = copy;
    this.made = made;
  }
}

/** The result of comparing a list with the previous list. */
export interface SeenList<M, R> {
  readonly made: readonly R[];
  /**
   * Returns private copies of the messages. An unchanged message is the same object in every list.
   * Fields that are not reported are compared only in this call.
   */
  readonly copies: () => readonly M[];
}

/** Options for comparing messages. */
export interface SeenOptions<M, R> {
  /** Derives a value from a copy of a message. */
  readonly make: (message: M) => R;
  /** Returns whether two messages would give the same derived value. */
  readonly makesSame?: (one: M, other: M) => boolean;
}

/**
 * The messages of one list as last seen. Harnesses make a new list for each model call. If a
 * message has the same content at the same index, its derived value is reused.
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
   * Compares a list with the previous one. The list must not change until its copies have been
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
