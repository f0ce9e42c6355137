import { ModelCallRule } from '../history/rebuild/model-calls.js';
import type { EntryOf, RecordedEntry } from '../lab/recordings/neutral-session.js';

/** Events that remove a part of the conversation from the context. */
export const REWINDS: ReadonlySet<string> = new Set(['rewind', 'branch', 'rollback']);

/** Counts the model calls of a session as an import would count them in its steps. */
export class CallCounter {
  readonly rule = new ModelCallRule();
  calls = 0;
  /** Number of calls that were copied from another session. */
  copied = 0;
  /** Number of its own tool calls. They count as model calls if there are no answers with text. */
  tools = 0;
  /** Calls that a rewind took back. */
  left = { calls: 0, tools: 0 };
  hasAnswers = false;

  add(begins: boolean, copied: boolean | undefined): void {
    if (!begins) return;
    this.calls += 1;
    if (copied === true) this.copied += 1;
  }

  /** Calls that the session made itself. */
  get own(): number {
    return this.hasAnswers ? this.calls - this.copied : this.tools;
  }

  /** Its own calls in the conversation as it is now. */
  get kept(): { readonly calls: number; readonly tools: number } {
    return { calls: this.calls - this.copied - this.left.calls, tools: this.tools - this.left.tools };
  }

  returnTo({ calls, tools }: CallCounter['kept']): void {
    this.left = { calls: this.calls - this.copied - calls, tools: this.tools - tools };
  }
}

/** Remembers a value around each entry of a session, so that a rewind can return to it. */
export class KeptPlaces<T> {
  readonly #places = new Map<string, { readonly before: T; readonly after: T }>();
  /** The values before the person's prompts that were not taken back. */
  readonly #prompts: T[] = [];

  note(entry: Exclude<RecordedEntry, { kind: 'session' }>, { before, after }: { before: T; after: T }): void {
    if (entry.kind === 'message' && entry.origin === 'person') this.#prompts.push(before);
    if (entry.native_id === undefined) return;
    this.#places.set(entry.native_id, { before: this.#places.get(entry.native_id)?.before ?? before, after });
  }

  /** Returns the value that a rewind returns to. Undefined if the recording does not state it. */
  returnTo({ undone_from, undone_turns, parent_id }: EntryOf<'event'>): T | undefined {
    if (undone_turns !== undefined) return this.#prompts.splice(-undone_turns)[0];
    return this.#places.get(undone_from ?? '')?.before ?? this.#places.get(parent_id ?? '')?.after;
  }
}

/** The counts of a session at an entry of its recording. */
export interface CountsThen {
  readonly calls: readonly CallCounter['kept'][];
  readonly turns: number;
}
