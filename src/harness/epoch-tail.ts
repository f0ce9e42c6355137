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
 * Where an epoch begins: the first turn outside its base, and the index in the harness's list at
 * which the part that stays begins.
 */
export interface EpochStart {
  readonly turn: number;
  readonly from: number;
}

/** A replaced result in a harness's list: the index of its message, its call, the new text. */
export interface LoopReference {
  readonly index: number;
  readonly callId: ObjectId;
  readonly text: string;
}

/** The part of an epoch's last request that the next request repeats. */
export interface KeptTail extends Pick<KeptMessages, 'shown'> {
  readonly list: KeptList | undefined;
}

/**
 * The part of an epoch's requests after the base, without notes: the harness's list or the recorded
 * chat.
 */
export interface EpochTail {
  /** Whether the user's last message has no answer yet. */
  readonly atUser: boolean;
  /** Where a new epoch would begin. */
  readonly start: EpochStart;
  /** Returns the note of a request that begins an epoch there. */
  note(start: EpochStart): NoteProof | undefined;
  /** Returns the record entry for the messages from `from` on. Undefined without a list. */
  list(from: number): KeptList | undefined;
  /**
   * Returns the approximate length of those messages in UTF-16 units, with replaced results and
   * without notes.
   */
  chars(from: number, lines: EpochState['lines']): number;
  /** Returns the messages whose call results are replaced by lines. */
  references(from: number, lines: EpochState['lines']): readonly LoopReference[];
  /** Returns whether there are no such messages. Then a note has no place. */
  isEmpty(from: number): boolean;
  /**
   * Returns the part that stays if the list begins as at the last request. Otherwise returns
   * undefined.
   */
  kept(last: { readonly list: KeptList | undefined; readonly step: number }): KeptTail | undefined;
}

/** A harness's list before a model call. */
export interface ListTail extends PlacedList {
  /** The user's last message with no call open before it. */
  readonly start: Pick<PlacedEntry, 'index' | 'turn'>;
  /** The running turn. */
  readonly turn: number;
  /** Earlier knowledge of the session's lists. Default: none. */
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
 * Returns the tail of requests that a harness mixes with its own messages. Within a turn, a new
 * epoch begins without the list.
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
 * Returns the tail of requests without a harness list. It is the recorded chat, which only grows.
 * It has no reasoning, and results are in notes.
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
