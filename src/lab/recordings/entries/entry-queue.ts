import type { EntryKind, EntryOf, RecordedEntry } from '../neutral-session.js';

/** Maximum size of the queue while it holds an entry back. */
const MAX_WAITING = { entries: 4096, chars: 16 * 1024 * 1024 };

/** An entry in the queue that later records may still change. */
export interface HeldEntry<K extends EntryKind> {
  readonly entry: EntryOf<K>;
  /** Changes the entry. Returns false if it has already left the queue. */
  update(change: Partial<EntryOf<K>>): boolean;
  /** Declares the entry final, so that it can leave the queue. */
  release(): void;
  /** Removes the entry from the queue, unless it has left already. */
  withdraw(): void;
}

interface Slot {
  entry: RecordedEntry;
  held: boolean;
}

function charsOf(entry: RecordedEntry): number {
  if (entry.kind === 'session') return entry.system_prompt?.length ?? 0;
  if (entry.kind === 'call') return 0;
  const files = entry.kind === 'result' || entry.kind === 'event' ? (entry.files ?? []) : [];
  const text = entry.kind === 'compaction' ? entry.summary : entry.text;
  return files.reduce((sum, file) => sum + (file.text?.length ?? 0), text?.length ?? 0);
}

/**
 * Keeps entries in the order of the recording while some of them wait for later records that may
 * change them. Beyond 4,096 entries or 16 million characters, held entries leave the queue as they
 * are.
 */
export class EntryQueue {
  #slots: Slot[] = [];
  #chars = 0;

  /** Adds a finished entry. */
  push(entry: RecordedEntry): void {
    this.#put({ entry, held: false });
  }

  /** Adds an entry that is held until it is released. */
  hold<K extends EntryKind>(entry: EntryOf<K>): HeldEntry<K>;
  hold(entry: RecordedEntry): HeldEntry<EntryKind>;
  hold(entry: RecordedEntry): HeldEntry<EntryKind> {
    const slot: Slot = { entry, held: true };
    this.#put(slot);
    return {
      get entry() {
        return slot.entry;
      },
      update(change) {
        if (slot.held) Object.assign(slot.entry, change);
        return slot.held;
      },
      release() {
        slot.held = false;
      },
      withdraw: () => {
        if (!this.#slots.includes(slot)) return;
        this.#slots = this.#slots.filter((one) => one !== slot);
        this.#chars -= charsOf(slot.entry);
      },
    };
  }

  /** Removes and returns the entries before the first held entry. */
  take(): readonly RecordedEntry[] {
    const first = this.#slots.findIndex(({ held }) => held);
    const ready = this.#slots.splice(0, first < 0 ? this.#slots.length : first);
    for (const { entry } of ready) this.#chars -= charsOf(entry);
    if (first < 0) this.#chars = 0;
    return ready.map(({ entry }) => entry);
  }

  /** Removes and returns all entries, at the end of the recording. */
  drain(): readonly RecordedEntry[] {
    for (const slot of this.#slots) slot.held = false;
    return this.take();
  }

  #put(slot: Slot): void {
    this.#slots.push(slot);
    this.#chars += charsOf(slot.entry);
    if (this.#slots.length <= MAX_WAITING.entries && this.#chars <= MAX_WAITING.chars) return;
    for (const one of this.#slots) one.held = false;
  }
}
