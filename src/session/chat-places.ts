import type { ObjectId } from '../objects/ids.js';
import type { ChatMark } from './session-fold.js';
import type { SessionState } from './session-state.js';

/** Where something stands in a chat. */
export interface ChatPlace {
  readonly seq: number;
  readonly turn: number;
}

/** Where a call stands. */
export interface CallPlace extends ChatPlace {
  readonly id: ObjectId;
}

/** What a harness may have called a call: its id as it stands, without the number of one that came again, and without what made it unique (decision B2). */
function namesOf(id: ObjectId): ReadonlySet<string> {
  const once = id.replace(/~\d+$/, '');
  const names = new Set<string>([id, once]);
  for (let at = once.indexOf('@'); at >= 0; at = once.indexOf('@', at + 1)) names.add(once.slice(0, at));
  return names;
}

/** Where the messages and calls of one session stand, by the ids that their harness gave them. Grows with the session, so that each entry is looked at once. */
export class ChatPlaces {
  readonly #messages = new Map<string, ChatPlace>();
  readonly #calls = new Map<string, CallPlace[]>();
  #upto = 0;

  /** Takes in what came since it was asked last: always of the same session, as it grows. */
  upTo(state: SessionState): this {
    if (state.seq === this.#upto) return this;
    for (const mark of state.marksAfter(this.#upto)) this.#add(mark);
    this.#upto = state.seq;
    return this;
  }

  /** The last message of an id; undefined where none has it. */
  message(native: string): ChatPlace | undefined {
    return this.#messages.get(native);
  }

  /** The calls that an id may stand for, in the order of their steps. */
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
