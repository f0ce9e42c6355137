import type { RenderedMessage } from '../../assembly/render-messages.js';
import { beginsWith } from '../../harness/history-item.js';
import type { ReportedMessage } from '../../harness/message-schema.js';
import type { HandedList } from '../../objects/assembly-proof.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { GrowingHash } from '../../objects/hashes.js';
import { sameData } from '../../values/plain-data.js';
import type { LoopContext } from '../loop/loop-context.js';
import type { WholeList } from './sidecar-process.js';

/** The messages of a harness, in a form in which ours can be inserted. */
export interface HarnessList<M> {
  readonly list: WholeList;
  /**
   * For each reported message, its index in the harness's list. Several may share one index,
   * because a result may be a part of a larger message.
   */
  readonly places: readonly number[];
  readonly messages: readonly M[];
  /**
   * Returns the same list as private, immutable copies, with a matching `said`. An unchanged
   * message is the same object in every list. The copies are made on first use.
   */
  readonly kept: () => Pick<HarnessList<M>, 'messages' | 'said'>;
  /**
   * Makes a user message with one part for each text. `name` is unique in the list, and the same
   * message has the same name in every list.
   */
  readonly said: (message: RenderedMessage, name: string) => M;
  /**
   * Returns a message with lines in place of results, by index in the reported list. Everything
   * else stays the same.
   */
  readonly withReferences: (message: M, references: ReadonlyMap<number, string>) => M;
  /** Returns the id of a message within its list. */
  readonly idOf: (message: M) => string;
  /**
   * Returns a message without those thoughts that a provider binds to the preceding content.
   * Returns the same object if there are none.
   */
  readonly withoutThoughts: (message: M) => M;
}

/** Groups entries by their index in the harness's own list. */
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
 * Returns the list for a model call: the harness's messages since the running turn or epoch began,
 * with our messages before and after. In an epoch, some of our messages are in between. Such a
 * message comes after every harness message of its index, so it never separates a call from its
 * result.
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
  const ours = (rendered: readonly RenderedMessage[]): readonly M[] =>
    rendered.map((message) => said(message, message.section));
  return [...ours(before), ...tail, ...ours(after)];
}

/** A message of a list that was sent, and its canonical JSON. */
interface WrittenMessage {
  readonly message: unknown;
  readonly canonical: string;
}

const written = (message: unknown): WrittenMessage => ({
  message,
  canonical: canonicalJson(JSON.parse(JSON.stringify(message))),
});

/**
 * Hashes the lists of one session. A list usually extends the previous list. The common part is not
 * serialised or hashed again.
 */
export class HandedLists {
  #written: WrittenMessage[] = [];
  #hash = new GrowingHash();

  /** Returns whether a list begins with all messages of the previous list. */
  begins(messages: readonly unknown[]): boolean {
    return this.#written.every(({ message }, i) => message === messages[i] || sameData(message, messages[i]));
  }

  /**
   * Returns the hash and size of a list's canonical JSON (decision E7). Undefined fields are left
   * out. The messages must not change later.
   */
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
 * Builds the harness's own lists that are sent instead of ours. A provider may bind thoughts to the
 * request that the model got, and reject them in a request with another beginning (divergence E9).
 * So bound thoughts from requests with our context are left out. Later thoughts, and thoughts that
 * are not bound, stay.
 */
export class OwnLists<M> {
  #left: ReadonlySet<string> = new Set();
  /** Ids of the messages in the last own list. Undefined if the last list was ours. */
  #before: readonly string[] | undefined;

  /** Returns the list to send. Unchanged messages are the harness's own objects. */
  of({ messages, idOf, withoutThoughts }: Pick<HarnessList<M>, 'messages' | 'idOf' | 'withoutThoughts'>): readonly M[] {
    const ids = messages.map(idOf);
    const goesOn = this.#before?.every((id, i) => id === ids[i]) === true;
    // The list does not continue the last one. Earlier thoughts may be bound to another beginning.
    if (!goesOn) this.#left = new Set(ids);
    this.#before = ids;
    return messages.map((message, i) => (this.#left.has(ids[i] ?? '') ? withoutThoughts(message) : message));
  }
}

/** A harness's own list that was sent instead of ours. */
interface SentOwnList {
  /** The reported list. */
  readonly reported: readonly ReportedMessage[];
  /** The sent list, as immutable copies. */
  readonly messages: readonly unknown[];
}

/**
 * Decides when our list may be sent again after a model call that used the harness's own list.
 * Until the user's next message, our list would change the beginning of the request. The provider's
 * cache would miss, and bound thoughts would be lost.
 */
export class BypassedTurns {
  readonly #sent = new Map<string, SentOwnList>();

  /** Records the list that a model call used. */
  sent({ list }: Pick<HarnessList<unknown>, 'list'>, messages: readonly unknown[]): void {
    this.#sent.set(list.session, { reported: list.messages, messages });
  }

  /** Forgets the session's own list, because one of ours was sent. */
  end(session: string): void {
    this.#sent.delete(session);
  }

  /**
   * Returns whether our list may be sent. It may if it begins with the whole list that was sent, or
   * if the user has sent a message since. It also may if the harness has compacted or undone its
   * history.
   */
  allows({ list }: Pick<HarnessList<unknown>, 'list'>, ours: readonly unknown[]): boolean {
    const sent = this.#sent.get(list.session);
    if (sent === undefined || !beginsWith(list.messages, sent.reported)) return true;
    if (list.messages.slice(sent.reported.length).some(({ role }) => role === 'user')) return true;
    return sent.messages.every((message, i) => sameData(message, ours[i]));
  }
}
