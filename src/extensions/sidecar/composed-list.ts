import type { RenderedMessage } from '../../assembly/render-messages.js';
import type { LoopContext } from '../../harness/loop-session.js';
import type { HandedList } from '../../objects/assembly-proof.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { hashText } from '../../objects/hashes.js';
import type { WholeList } from './sidecar-process.js';

/** A list of a harness's own messages, and what ours are in it. */
export interface HarnessList<M> {
  readonly list: WholeList;
  /** The place in the harness's list of each message that was reported: a result may be a part of a larger message. */
  readonly places: readonly number[];
  readonly messages: readonly M[];
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
  const tail = messages.slice(start).flatMap((message, i) => {
    const replaced = lines.get(start + i)?.map(({ index, text }) => [index, text] as const);
    const own = replaced === undefined ? message : withReferences(message, new Map(replaced));
    return [own, ...(notes.get(start + i) ?? []).map((note) => said(note.message, note.name))];
  });
  const ours = (rendered: readonly RenderedMessage[]): readonly M[] => rendered.map((message) => said(message, message.section));
  return [...ours(before), ...tail, ...ours(after)];
}

/** One message of a list that was handed over: as its harness would write it, and in canonical JSON. */
interface WrittenMessage {
  readonly json: string;
  readonly canonical: string;
}

/** Hashes of the lists of one session: a list mostly begins as the one before, and what is known of that is not written again. */
export class HandedLists {
  #written: readonly WrittenMessage[] = [];

  /** Hash and size of a list as its canonical JSON has them (decision E7); members without a value are no part of it. */
  of(messages: readonly unknown[]): HandedList {
    const before = this.#written;
    this.#written = messages.map((message, i) => {
      const json = JSON.stringify(message);
      const known = before[i];
      return known?.json === json ? known : { json, canonical: canonicalJson(JSON.parse(json)) };
    });
    const text = `[${this.#written.map(({ canonical }) => canonical).join(',')}]`;
    return { sha256: hashText(text), chars: text.length, messages: messages.length };
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
