import type { EntryOf, RecordedEntry } from './neutral-session.js';

/** Events that remove a part of the conversation from the context. */
export const REWINDS: ReadonlySet<string> = new Set(['rewind', 'branch', 'rollback']);

/** A value before an entry, and the value after it. */
interface Around<T> {
  readonly before: T;
  readonly after: T;
}

/** Remembers a value around each entry of a session, so that a rewind can return to it. */
export class KeptPlaces<T> {
  readonly #places = new Map<string, Around<T>>();
  /** The values before the person's prompts that were not taken back. */
  readonly #prompts: T[] = [];

  get hasPrompts(): boolean {
    return this.#prompts.length > 0;
  }

  note(entry: Exclude<RecordedEntry, { kind: 'session' }>, { before, after }: Around<T>): void {
    if (entry.kind === 'message' && entry.origin === 'person') this.#prompts.push(before);
    if (entry.native_id === undefined) return;
    this.#places.set(entry.native_id, { before: this.#places.get(entry.native_id)?.before ?? before, after });
  }

  /** Returns the values around an entry, by the recording's id. Undefined if it is unknown. */
  around(native: string | undefined): Around<T> | undefined {
    return this.#places.get(native ?? '');
  }

  /** Returns the value that a rewind returns to. Undefined if the recording does not state it. */
  target({ undone_from, undone_turns, parent_id }: EntryOf<'event'>): T | undefined {
    if (undone_turns !== undefined) return this.#prompts.at(-undone_turns);
    return this.around(undone_from)?.before ?? this.around(parent_id)?.after;
  }

  /** Forgets the prompts that a rewind takes back. */
  takeBack({ undone_turns = 0 }: EntryOf<'event'>): void {
    this.#prompts.splice(this.#prompts.length - Math.min(undone_turns, this.#prompts.length));
  }

  /**
   * Returns the places of a branch: the entries that ended in it, and the prompts that began in it.
   */
  within(has: { readonly end: (after: T) => boolean; readonly begin: (before: T) => boolean }): KeptPlaces<T> {
    const kept = new KeptPlaces<T>();
    for (const [id, around] of this.#places) if (has.end(around.after)) kept.#places.set(id, around);
    kept.#prompts.push(...this.#prompts.filter(has.begin));
    return kept;
  }
}
