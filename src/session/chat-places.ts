import type { ObjectId } from '../objects/ids.js';
import type { ChatMark } from './session-fold.js';
import type { SessionState } from './session-state.js';

/** A position in a chat. */
export interface ChatPlace {
  readonly seq: number;
  readonly turn: number;
}

/** The position of a call. */
export interface CallPlace extends ChatPlace {
  readonly id: ObjectId;
}

/**
 * Returns the ids that a harness may have given a call (decision B2). They are the stored id, and
 * the id without a repeat number or a suffix for uniqueness.
 */
export function namesOf(id: ObjectId): ReadonlySet<string> {
  const once = id.replace(/~\d+$/, '');
  const names = new Set<string>([id, once]);
  for (let at = once.indexOf('@'); at >= 0; at = once.indexOf('@', at + 1)) names.add(once.slice(0, at));
  return names;
}

/**
 * The positions of a session's messages and calls, by the harness's ids. Grows with the session, so
 * each entry is processed once.
 */
export class ChatPlaces {
  readonly #messages = new Map<string, ChatPlace>();
  readonly #calls = new Map<string, CallPlace[]>();
  #upto = 0;

  /** Adds the entries since the last call. Always pass the same growing session. */
  upTo(state: SessionState): this {
    if (state.seq === this.#upto) return this;
    for (const mark of state.marksAfter(this.#upto)) this.#add(mark);
    this.#upto = state.seq;
    return this;
  }

  /** Returns the position of the last message with an id, or undefined. */
  message(native: string): ChatPlace | undefined {
    return this.#messages.get(native);
  }

  /** Returns the calls that an id may name, in step order. */
  calls(native: string): readonly CallPlace[] {
    return this.#calls.get(native) ?? [];
  }

  #add({ seq, turn, native, message, call }: ChatMark): void {
    if (message !== undefined && native !== undefined) this.#messages.set(native, { seq, turn });
    if (call === undefined) return;
    for (const name of namesOf(call)) {
      const known = this.#calls.get(name);
      if (known === undefined) this.#calls.set(name, [{ id: call, seq, turn }]);
      else known.push({ id: call, seq, turn });
    }
  }
}
