import type { EpochState } from '../assembly/epoch/epoch-state.js';
import type { KeptList, NoteProof } from '../objects/assembly-proof.js';
import type { ObjectId } from '../objects/ids.js';
import type { SessionState } from '../session/session-state.js';
import { contentText } from './content-text.js';
import { GrowingTail, type PlacedList } from './growing-tail.js';
import { type KeptMessages, keptMessages } from './kept-messages.js';
import type { ReportedMessage } from './message-schema.js';
import type { PlacedEntry } from './reported-chat.js';

/**
 * The start of an epoch of contexts. `turn` is the first turn that is not in the epoch's base.
 * `from` is the index in the harness's list of the first message that stays in requests.
 */
export interface EpochStart {
  readonly turn: number;
  readonly from: number;
}

/**
 * A line that replaces a result in a harness's list: the index of the message, the call, and the
 * line.
 */
export interface LoopReference {
  readonly index: number;
  readonly callId: ObjectId;
  readonly text: string;
}

/** The tail of an epoch's last request, which the next request must repeat. */
export interface KeptTail extends Pick<KeptMessages, 'shown'> {
  readonly list: KeptList | undefined;
}

/**
 * The tail of an epoch's requests: everything after the base except our notes. It is the harness's
 * list or, without one, the recorded chat.
 */
export interface EpochTail {
  /** Whether the user's last message has no answer yet. */
  readonly atUser: boolean;
  /** Where a new epoch would begin. */
  readonly start: EpochStart;
  /** Returns the note for a request that begins an epoch at `start`. */
  note(start: EpochStart): NoteProof | undefined;
  /**
   * Returns the messages from `from` on as they are stored in a record. Undefined if the harness
   * has no list.
   */
  list(from: number): KeptList | undefined;
  /**
   * Returns the approximate number of UTF-16 units in the messages from `from` on. A result that
   * `lines` replaces counts as its line. Notes are left out.
   */
  chars(from: number, lines: EpochState['lines']): number;
  /** Returns the results from `from` on that `lines` replaces. */
  references(from: number, lines: EpochState['lines']): readonly LoopReference[];
  /** Returns whether no messages follow `from`. Then there is no place for a note. */
  isEmpty(from: number): boolean;
  /**
   * Returns the tail that the next request repeats. Undefined if the list no longer begins as it
   * did in the last request.
   */
  kept(last: { readonly list: KeptList | undefined; readonly step: number }): KeptTail | undefined;
}

/** A harness's list before a model call. */
export interface ListTail extends PlacedList {
  /** The last message of the user that no open call precedes. */
  readonly start: Pick<PlacedEntry, 'index' | 'turn'>;
  /** The number of the running turn. */
  readonly turn: number;
  /** Cache of facts about the session's list. Default: an empty cache. */
  readonly known?: GrowingTail;
}

function referencesOf(
  placed: readonly PlacedEntry[],
  from: number,
  lines: EpochState['lines'],
): readonly LoopReference[] {
  if (lines.size === 0) return [];
  return placed.flatMap(({ kind, index, callId }) => {
    const text = kind === 'call' && index >= from && callId !== undefined ? lines.get(callId) : undefined;
    return text === undefined || callId === undefined ? [] : [{ index, callId, text }];
  });
}

const resultChars = (message: ReportedMessage | undefined): number => contentText(message?.content).length;

/**
 * Returns the tail for a harness that also sends its own messages. If an epoch begins within a
 * turn, no message of the list stays.
 */
export function listTail({ messages, placed, start, turn, known = new GrowingTail() }: ListTail): EpochTail {
  const given = { messages, placed };
  const atUser = messages.slice(start.index + 1).every(({ role }) => role !== 'assistant');
  return {
    atUser,
    start: atUser ? { turn: start.turn, from: start.index } : { turn: turn + 1, from: messages.length },
    note: () => undefined,
    list: (from) => known.from(given, from).list,
    chars: (from, lines) =>
      known.chars(given, from) -
      referencesOf(placed, from, lines).reduce(
        (saved, { index, text }) => saved + Math.max(0, resultChars(messages[index]) - text.length),
        0,
      ),
    references: (from, lines) => referencesOf(placed, from, lines),
    isEmpty: (from) => messages.length === from,
    kept: ({ list }) => (list === undefined ? undefined : keptMessages(given, list, known)),
  };
}

const NO_RESULTS = new Set<never>();

/**
 * Returns the tail for a harness without its own list: the recorded chat. It has no reasoning, and
 * notes contain the results.
 */
export function chatTail(state: SessionState): EpochTail {
  const { marks, turn } = state;
  const last = marks.findLast(({ message, call }) => message !== undefined || call !== undefined);
  const atUser = last?.message?.role === 'user' && last.call === undefined;
  return {
    atUser,
    start: { turn: atUser ? last.turn : turn + 1, from: 0 },
    note: (start) => {
      const first = marks.find((mark) => mark.turn >= start.turn);
      return first === undefined ? undefined : { after: 0, chat: first.seq - 1 };
    },
    list: () => undefined,
    chars: () => 0,
    references: () => [],
    isEmpty: () => false,
    kept: ({ list, step }) =>
      list === undefined
        ? { list, shown: () => ({ count: 0, results: NO_RESULTS, shows: () => false, reads: [], chatUpTo: step }) }
        : undefined,
  };
}
