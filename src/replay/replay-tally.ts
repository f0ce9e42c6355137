import type { EntryOf, RecordedEntry } from '../recordings/neutral-session.js';
import type { RecordedToolKind } from './recorded-tools.js';

type Counts = Record<string, number>;

const bump = (counts: Counts, name: string, by = 1): void => {
  counts[name] = (counts[name] ?? 0) + by;
};

/** What was counted while a recording was replayed: of the recording, and of what became of it. */
export class ReplayTally {
  readonly messages: Counts = {};
  readonly events: Counts = {};
  readonly tools: Counts = {};
  readonly kinds: Record<RecordedToolKind, number> = {
    read: 0,
    write: 0,
    edit: 0,
    patch: 0,
    list: 0,
    glob: 0,
    grep: 0,
    shell: 0,
    other: 0,
  };
  readonly usage = { answers: 0, input: 0, output: 0, cache_read: 0, cache_write: 0 };
  readonly formats = new Set<string>();
  calls = 0;
  results = 0;
  failed = 0;
  unanswered = 0;
  compactions = 0;
  shellReads = 0;
  /** Reads by any means: whole files, parts of files. */
  readonly reads = { whole: 0, part: 0 };
  readonly changes = { followed: 0, unknown: 0 };
  /** Files that calls read or mentioned, as they were reported to the client. */
  readonly observations = { readings: 0, mentions: 0, left: 0 };

  take(entry: RecordedEntry): void {
    if (entry.kind === 'session') this.formats.add(entry.format);
    else if (entry.kind === 'message') this.#message(entry);
    else if (entry.kind === 'call') this.#call(entry);
    else if (entry.kind === 'result') this.results += 1;
    else if (entry.kind === 'compaction') this.compactions += 1;
    else bump(this.events, entry.name);
  }

  #message({ role, usage }: EntryOf<'message'>): void {
    bump(this.messages, role);
    if (usage === undefined) return;
    this.usage.answers += 1;
    for (const name of ['input', 'output', 'cache_read', 'cache_write'] as const) this.usage[name] += usage[name] ?? 0;
  }

  #call({ tool }: EntryOf<'call'>): void {
    this.calls += 1;
    bump(this.tools, tool);
  }
}
