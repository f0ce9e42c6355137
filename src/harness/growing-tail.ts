import { foreignTool } from '../foreign-tools/tool-table.js';
import type { KeptList } from '../objects/assembly-proof.js';
import { GrowingHash, hashText } from '../objects/hashes.js';
import type { ObjectId } from '../objects/ids.js';
import { beginsWith, type CallItem, GrowingHistory } from './history-item.js';
import type { ReportedMessage } from './message-schema.js';
import type { PlacedEntry } from './reported-chat.js';

interface MessagePrint {
  readonly sha256: string;
  readonly chars: number;
}

const known = new WeakMap<ReportedMessage, MessagePrint>();

/**
 * Returns a hash of what a model sees of a message. Ids, reports of files and costs are left out.
 */
function printOf(message: ReportedMessage): MessagePrint {
  const before = known.get(message);
  if (before !== undefined) return before;
  const { role, name, content, tool_calls, tool_call_id, toolCallId, is_error, isError } = message;
  const text = JSON.stringify([role, name, content, tool_calls, tool_call_id ?? toolCallId, is_error ?? isError]);
  const print = { sha256: hashText(text.toWellFormed()), chars: text.length };
  known.set(message, print);
  return print;
}

/** Returns the messages from `from` on as they are stored in a record. */
export function keptList(messages: readonly ReportedMessage[], from: number, count = messages.length - from): KeptList {
  const prints = messages.slice(from, from + count).map((message) => printOf(message).sha256);
  return { from, count, sha256: hashText(prints.join('\n')) };
}

/** A harness's list, and the place of each entry in the session. */
export interface PlacedList {
  readonly messages: readonly ReportedMessage[];
  readonly placed: readonly PlacedEntry[];
}

/** A finished call in a tail, with the id of its object. */
export type TailCall = CallItem & { readonly index: number; readonly ref: ObjectId };

/** Processes the part of a growing list that begins at one of its messages. */
class TailWalk {
  readonly from: number;
  messages: readonly ReportedMessage[] = [];
  placed: readonly PlacedEntry[] = [];
  /** Number of the list's entries that were processed. */
  entries = 0;
  readonly prints = new GrowingHash();
  list: KeptList;
  chars = 0;
  readonly calls: TailCall[] = [];
  readonly results = new Set<ObjectId>();
  readonly reads: TailCall[] = [];
  hasLateResult = false;

  constructor(from: number) {
    this.from = from;
    this.list = { from, count: 0, sha256: this.prints.with('') };
  }

  goesOnIn({ messages, placed }: PlacedList): boolean {
    return beginsWith(messages, this.messages) && beginsWith(placed, this.placed);
  }

  on({ messages, placed }: PlacedList, history: GrowingHistory): void {
    const { from } = this;
    for (const message of messages.slice(Math.max(from, this.messages.length))) {
      const { sha256, chars } = printOf(message);
      this.prints.add(this.prints.chars === 0 ? sha256 : `\n${sha256}`);
      this.chars += chars;
    }
    const count = Math.max(0, messages.length - from);
    if (count !== this.list.count) this.list = { from, count, sha256: this.prints.with('') };
    const refs = new Map<number, ObjectId[]>();
    for (const { kind, index, callId } of placed.slice(this.placed.length)) {
      if (kind === 'call' && callId !== undefined && index >= from)
        refs.set(index, [...(refs.get(index) ?? []), callId]);
    }
    const { items } = history.of(messages);
    for (const item of items.slice(this.entries)) {
      const ref = item.kind === 'call' ? refs.get(item.index)?.shift() : undefined;
      if (item.kind === 'call' && ref !== undefined) this.#add({ ...item, ref });
    }
    [this.messages, this.placed, this.entries] = [[...messages], placed, items.length];
  }

  #add(call: TailCall): void {
    const { ref, status, tool, from: made } = call;
    this.calls.push(call);
    this.results.add(ref);
    if (status === 'ok' && foreignTool(tool).kind === 'read') this.reads.push(call);
    this.hasLateResult ||= made !== undefined && 'index' in made && made.index < this.from;
  }
}

/** The facts about a tail that were computed from its messages. */
export type KnownTail = Readonly<Omit<TailWalk, 'messages' | 'placed' | 'goesOnIn' | 'on'>>;

/**
 * Caches facts about the part of a session's list that stays in a request. The list usually grows
 * at its end, so only new messages are hashed and parsed. Messages must not change, and an
 * unchanged message and its place must be the same objects. A list that does not continue the
 * previous one is processed from its start.
 */
export class GrowingTail {
  readonly #history: GrowingHistory;
  #walk: TailWalk | undefined;

  constructor(history: GrowingHistory = new GrowingHistory()) {
    this.#history = history;
  }

  /**
   * Returns the facts about the part of a list that begins at a message. They are valid until the
   * next list is processed.
   */
  from(list: PlacedList, from: number): KnownTail {
    const walk = this.#walk?.from === from && this.#walk.goesOnIn(list) ? this.#walk : new TailWalk(from);
    // The state is removed during the work, because it must not be used again after a failure.
    this.#walk = undefined;
    walk.on(list, this.#history);
    this.#walk = walk;
    return walk;
  }

  /** Returns whether a list contains the messages that a record names. */
  has({ messages }: PlacedList, { from, count, sha256 }: KeptList): boolean {
    if (messages.length < from + count) return false;
    const walk = this.#walk;
    const isWalked =
      walk !== undefined && walk.from === from && walk.list.count === count && beginsWith(messages, walk.messages);
    return (isWalked ? walk.list : keptList(messages, from, count)).sha256 === sha256;
  }

  /**
   * Returns the approximate number of UTF-16 units in the messages. Reasoning is not reported, so
   * it is left out.
   */
  chars(list: PlacedList, from: number): number {
    if (this.#walk?.from === from) return this.from(list, from).chars;
    return list.messages.slice(from).reduce((chars, message) => chars + printOf(message).chars, 0);
  }
}
