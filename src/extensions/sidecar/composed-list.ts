import type { RenderedMessage } from '../../assembly/render-messages.js';
import { beginsWith } from '../../harness/history-item.js';
import type { LoopContext } from '../../harness/loop-session.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { HandedList } from '../../objects/assembly-proof.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { GrowingHash } from '../../objects/hashes.js';
import { sameData } from '../../values/plain-data.js';
import type { WholeList } from './sidecar-process.js';

/** A list of a harness's own messages, and what ours are in it. */
export interface HarnessList<M> {
  readonly list: WholeList;
  /** The place in the harness's list of each message that was reported: a result may be a part of a larger message. */
  readonly places: readonly number[];
  readonly messages: readonly M[];
  /** The same list in copies of ours, which nobody else can change: the same object in every list that has the message as it is; and `said` for it. Made when it is asked for first. */
  readonly kept: () => Pick<HarnessList<M>, 'messages' | 'said'>;
  /** A message of the user with one part for each text; `name` is its own in the list, the same in every list that has it. */
  readonly said: (message: RenderedMessage, name: string) => M;
  /** A message with the results in it replaced by lines, by their places in the reported list; everything else stays as it is. */
  readonly withReferences: (message: M, references: ReadonlyMap<number, string>) => M;
  /** What tells a message from the others of its list. */
  readonly idOf: (message: M) => string;
  /** A message without the thoughts in it that a provider binds to what stands before them; the same message where there are none. */
  readonly withoutThoughts: (message: M) => M;
}

/** Entries by the place in the harness's own list of what they stand at. */
function byPlace<T extends { readonly index: number }>(
  places: readonly number[],
  entries: readonly T[],
): ReadonlyMap<number, readonly T[]> {
  const found = new Map<number, T[]>();
  for (const entry of entries) {
    const place = places[entry.index] ?? -1;
    const there = found.get(place);
    if (there === undefined) found.set(place, [entry]);
    else there.push(entry);
  }
  return found;
}

/**
 * The list that a harness hands over: its own messages from the running turn or the epoch on, with ours around them and, in an epoch, between them. One that is
 * put in stands behind everything of its place, so never between a call and its result.
 */
export function composed<M>(
  { places, messages, said, withReferences }: Pick<HarnessList<M>, 'places' | 'messages' | 'said' | 'withReferences'>,
  context: LoopContext,
): readonly M[] {
  const { from, before, inserts, after, references } = context;
  const start = places[from] ?? messages.length;
  const lines = byPlace(places, references);
  const notes = byPlace(
    places,
    inserts.map((insert, rank) => ({ ...insert, name: `notes_${rank}` })),
  );
  const tail: M[] = [];
  for (let place = start; place < messages.length; place++) {
    const message = messages[place] as M;
    const replaced = lines.get(place)?.map(({ index, text }) => [index, text] as const);
    tail.push(replaced === undefined ? message : withReferences(message, new Map(replaced)));
    for (const note of notes.get(place) ?? []) tail.push(said(note.message, note.name));
  }
  const ours = (rendered: readonly RenderedMessage[]): readonly M[] => rendered.map((message) => said(message, message.section));
  return [...ours(before), ...tail, ...ours(after)];
}

/** One message of a list that was handed over, and its canonical JSON. */
interface WrittenMessage {
  readonly message: unknown;
  readonly canonical: string;
}

const written = (message: unknown): WrittenMessage => ({ message, canonical: canonicalJson(JSON.parse(JSON.stringify(message))) });

/** Hashes of the lists of one session: a list mostly begins as the one before, and what is known of that is neither written nor hashed again. */
export class HandedLists {
  #written: WrittenMessage[] = [];
  #hash = new GrowingHash();

  /** Whether a list begins with every message of the list before. */
  begins(messages: readonly unknown[]): boolean {
    return this.#written.every(({ message }, i) => message === messages[i] || sameData(message, messages[i]));
  }

  /** Hash and size of a list as its canonical JSON has them (decision E7); members without a value are no part of it. Messages that were given here do not change. */
  of(messages: readonly unknown[]): HandedList {
    const before = this.#written;
    const isKnown = (message: unknown, i: number): boolean => {
      const known = before[i]?.message;
      return i < before.length && (known === message || sameData(known, message));
    };
    const differs = messages.findIndex((message, i) => !isKnown(message, i));
    const same = differs < 0 ? messages.length : differs;
    const fresh = messages
      .slice(same)
      .map((message, i) => (isKnown(message, same + i) ? (before[same + i] as WrittenMessage) : written(message)));
    if (same < before.length) this.#begin(before.slice(0, same));
    for (const one of fresh) this.#add(one);
    const sha256 = this.#hash.with(this.#written.length === 0 ? '[]' : ']');
    return { sha256, chars: this.#hash.chars + (this.#written.length === 0 ? 2 : 1), messages: messages.length };
  }

  #begin(kept: readonly WrittenMessage[]): void {
    this.#written = [];
    this.#hash = new GrowingHash();
    for (const one of kept) this.#add(one);
  }

  #add(one: WrittenMessage): void {
    this.#hash.add(`${this.#written.length === 0 ? '[' : ','}${one.canonical}`);
    this.#written.push(one);
  }
}

/**
 * The harness's own list where it goes out instead of ours. What a model thought before is bound to a context of ours, and its provider may refuse it behind any
 * other (divergence E9): that thinking is left out for as long as the harness's own list goes out, what is thought meanwhile stays. Other reasoning than the bound
 * one is left alone.
 */
export class OwnLists<M> {
  #left: ReadonlySet<string> = new Set();
  /** The names of the messages of the last one; undefined where ours went out since. */
  #before: readonly string[] | undefined;

  /** The list; its messages are the harness's own objects wherever nothing is left out of them. */
  of({ messages, idOf, withoutThoughts }: Pick<HarnessList<M>, 'messages' | 'idOf' | 'withoutThoughts'>): readonly M[] {
    const ids = messages.map(idOf);
    const goesOn = this.#before?.every((id, i) => id === ids[i]) === true;
    // A list that does not begin as the one before is another beginning for what was thought since, too.
    if (!goesOn) this.#left = new Set(ids);
    this.#before = ids;
    return messages.map((message, i) => (this.#left.has(ids[i] ?? '') ? withoutThoughts(message) : message));
  }
}

/** A harness's own list that went out in place of ours. */
interface SentOwnList {
  /** As it was reported. */
  readonly reported: readonly ReportedMessage[];
  /** As it went out, in copies that do not change. */
  readonly messages: readonly unknown[];
}

/**
 * Remembers, per session, the harness's own list that a model call was sent instead of ours. Until the next message of the user our list would give the
 * request another beginning: the provider's cache would miss, and thoughts of the model that are bound to that beginning would be lost.
 */
export class BypassedTurns {
  readonly #sent = new Map<string, SentOwnList>();

  /** Notes the list that a call was sent. */
  sent({ list }: Pick<HarnessList<unknown>, 'list'>, messages: readonly unknown[]): void {
    this.#sent.set(list.session, { reported: list.messages, messages });
  }

  /** Forgets the session's list: ours went out. */
  end(session: string): void {
    this.#sent.delete(session);
  }

  /**
   * Whether our list may go out: it begins with every message of the list that was sent, or the sent one is no longer the beginning of the harness's list
   * (compaction, undo), or the user has said something since.
   */
  allows({ list }: Pick<HarnessList<unknown>, 'list'>, ours: readonly unknown[]): boolean {
    const sent = this.#sent.get(list.session);
    if (sent === undefined || !beginsWith(list.messages, sent.reported)) return true;
    if (list.messages.slice(sent.reported.length).some(({ role }) => role === 'user')) return true;
    return sent.messages.every((message, i) => sameData(message, ours[i]));
  }
}
