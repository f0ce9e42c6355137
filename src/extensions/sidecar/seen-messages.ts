import { copyOfData, sameData } from '../../values/plain-data.js';

/** A message as it was seen for the first time, and what was made of it then. */
class SeenMessage<M, R> {
  copy: M;
  readonly made: R;

  constructor(copy: M, made: R) {
    this.copy = copy;
    this.made = made;
  }
}

/** A list, compared with the one before it. */
export interface SeenList<M, R> {
  readonly made: readonly R[];
  /** Copies of the messages, which nobody else can change: the same object in every list that has the message as it is. What is not reported is compared here, when it is asked for. */
  readonly copies: () => readonly M[];
}

/** How messages are told from one another. */
export interface SeenOptions<M, R> {
  /** What is made of a message; it is given a copy. */
  readonly make: (message: M) => R;
  /** Whether the same is made of two messages. */
  readonly makesSame?: (one: M, other: M) => boolean;
}

/**
 * The messages of one list as it was seen last. Harnesses make their lists anew for each call of the model: a message that says the same at the same place is compared only, and what was made of it
 * serves again.
 */
export class SeenMessages<M, R> {
  readonly #make: (message: M) => R;
  readonly #makesSame: (one: M, other: M) => boolean;
  #seen: readonly SeenMessage<M, R>[] = [];

  constructor({ make, makesSame = sameData }: SeenOptions<M, R>) {
    this.#make = make;
    this.#makesSame = makesSame;
  }

  /** Takes in a list, which must not change before its copies were asked for. */
  of(messages: readonly M[]): SeenList<M, R> {
    const before = this.#seen;
    const seen = messages.map((message, i) => {
      const known = before[i];
      return known !== undefined && (known.copy === message || this.#makesSame(known.copy, message)) ? known : this.#taken(message);
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
