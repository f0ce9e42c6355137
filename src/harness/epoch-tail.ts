import type { EpochState } from '../assembly/epoch/epoch-state.js';
import type { KeptList, NoteProof } from '../objects/assembly-proof.js';
import type { ObjectId } from '../objects/ids.js';
import type { SessionState } from '../session/session-state.js';
import { contentText } from './content-text.js';
import { GrowingTail, type PlacedList } from './growing-tail.js';
import { type KeptMessages, keptMessages } from './kept-messages.js';
import type { ReportedMessage } from './message-schema.js';
import type { PlacedEntry } from './reported-chat.js';

/** Where an epoch begins: the turn that does not stand in its base any more, and the first message of a harness's list that stays. */
export interface EpochStart {
  readonly turn: number;
  readonly from: number;
}

/** A result of a harness's list that something else stands for: its message, its call, and what takes its place. */
export interface LoopReference {
  readonly index: number;
  readonly callId: ObjectId;
  readonly text: string;
}

/** The part of an epoch's last request that the next one has as well. */
export interface KeptTail extends Pick<KeptMessages, 'shown'> {
  readonly list: KeptList | undefined;
}

/** What the requests of an epoch have behind their base, beside notes: a harness's own list, or the chat as recorded. */
export interface EpochTail {
  /** Whether nobody has answered the message of the user yet. */
  readonly atUser: boolean;
  /** Where an epoch that begins now does. */
  readonly start: EpochStart;
  /** What the request with which an epoch begins there has in a note. */
  note(start: EpochStart): NoteProof | undefined;
  /** The messages from one on, as a record names them; undefined where there is no list. */
  list(from: number): KeptList | undefined;
  /** About how long those messages are, in UTF-16 units, with lines in the place of what some calls answered; what stands in notes is not counted. */
  chars(from: number, lines: EpochState['lines']): number;
  /** The messages of the calls that have lines. */
  references(from: number, lines: EpochState['lines']): readonly LoopReference[];
  /** Whether those messages are none: then there is no place behind which a note could stand. */
  isEmpty(from: number): boolean;
  /** What stays of it, where it begins as it did at the last request; undefined where it does not. */
  kept(last: { readonly list: KeptList | undefined; readonly step: number }): KeptTail | undefined;
}

/** A harness's own list before a model call. */
export interface ListTail extends PlacedList {
  /** The last message of the user before which no call waits for its result. */
  readonly start: Pick<PlacedEntry, 'index' | 'turn'>;
  /** The running turn. */
  readonly turn: number;
  /** What is known of the session's lists so far; nothing if left out. */
  readonly known?: GrowingTail;
}

function referencesOf(placed: readonly PlacedEntry[], from: number, lines: EpochState['lines']): readonly LoopReference[] {
  if (lines.size === 0) return [];
  return placed.flatMap(({ kind, index, callId }) => {
    const text = kind === 'call' && index >= from && callId !== undefined ? lines.get(callId) : undefined;
    return text === undefined || callId === undefined ? [] : [{ index, callId, text }];
  });
}

const resultChars = (message: ReportedMessage | undefined): number => contentText(message?.content).length;

/** The tail of requests that a harness mixes with its own messages: inside a turn an epoch begins with nothing of the list. */
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

/** The tail of requests whose harness gives no list: the chat as recorded, which only grows. It has no reasoning, and results stand in notes. */
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
