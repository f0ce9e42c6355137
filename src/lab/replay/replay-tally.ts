import { ImportCounter, transcriptItems } from '../recordings/import-counts.js';
import type { EntryOf, RecordedEntry, RecordingFormat } from '../recordings/neutral-session.js';
import type { CallEffects } from './call-effects.js';

type Counts = Record<string, number>;

/** Without a prototype: a tool may be called `constructor`. */
const noCounts = (): Counts => Object.create(null) as Counts;

const bump = (counts: Counts, name: string, by = 1): void => {
  counts[name] = (counts[name] ?? 0) + by;
};

/** Counts that others make of a recording too. */
interface CountedItems {
  readonly items: number;
  readonly calls: number;
  readonly reads: number;
}

const NOTHING: CountedItems = { items: 0, calls: 0, reads: 0 };

/** What was counted while a recording was replayed: of the recording, and of what became of it. */
export class ReplayTally {
  readonly messages: Counts = noCounts();
  readonly events: Counts = noCounts();
  readonly tools: Counts = noCounts();
  /** Calls by what the tool is for; a kind that recordings seldom have is there only if it came. */
  readonly kinds: Counts = { read: 0, write: 0, edit: 0, patch: 0, list: 0, glob: 0, grep: 0, shell: 0, other: 0 };
  readonly usage = { answers: 0, input: 0, output: 0, cache_read: 0, cache_write: 0 };
  readonly #counter = new ImportCounter();
  readonly #sessions = new Map<string, RecordingFormat>();
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

  get formats(): readonly RecordingFormat[] {
    return [...new Set(this.#sessions.values())];
  }

  /** Items of the transcript as the recording's own format counts them, calls, and reads by any tool, as the importers count them. */
  get counted(): CountedItems & {
    readonly main: CountedItems;
    readonly copied: number;
    readonly shellReads: number;
    readonly attachedFiles: number;
  } {
    const each = [...this.#sessions].map(([id, format]): CountedItems => {
      const counts = this.#counter.session(id);
      return counts === undefined ? NOTHING : { items: transcriptItems(format, counts), calls: counts.calls, reads: counts.reads };
    });
    const [main = NOTHING] = each;
    const { copied, shell_reads: shellReads, attached_files: attachedFiles } = this.#counter.total();
    const total = each.reduce(
      (sum, one) => ({ items: sum.items + one.items, calls: sum.calls + one.calls, reads: sum.reads + one.reads }),
      NOTHING,
    );
    return { ...total, main, copied, shellReads, attachedFiles };
  }

  /** An item of a transcript, as its importer counts them. */
  item(session: string): void {
    this.#counter.addItem(session);
  }

  take(entry: RecordedEntry): void {
    this.#counter.add(entry);
    if (entry.kind === 'session') this.#sessions.set(entry.native_id, entry.format);
    else if (entry.kind === 'message') this.#message(entry);
    else if (entry.kind === 'call') this.#call(entry);
    else if (entry.kind === 'result') this.results += 1;
    else if (entry.kind === 'compaction') this.compactions += 1;
    else {
      bump(this.events, entry.name);
      this.#usage(entry.usage);
    }
  }

  /** What a call did, as far as it could be followed. */
  did({ kind, seen, readings, mentions, unknown, left }: CallEffects, failed: boolean): void {
    bump(this.kinds, kind);
    if (failed) this.failed += 1;
    for (const { how } of seen) {
      if (how !== 'whole' && how !== 'part') continue;
      this.reads[how] += 1;
      if (kind === 'shell') this.shellReads += 1;
    }
    this.changes.unknown += unknown;
    this.changes.followed += seen.filter(({ how }) => how === 'written').length - unknown;
    this.observations.readings += readings.length;
    this.observations.mentions += mentions.length;
    this.observations.left += left;
  }

  #message({ role, usage }: EntryOf<'message'>): void {
    bump(this.messages, role);
    this.#usage(usage);
  }

  #usage(usage: EntryOf<'message'>['usage']): void {
    if (usage === undefined) return;
    this.usage.answers += 1;
    for (const name of ['input', 'output', 'cache_read', 'cache_write'] as const) this.usage[name] += usage[name] ?? 0;
  }

  #call({ tool }: EntryOf<'call'>): void {
    this.calls += 1;
    bump(this.tools, tool);
  }
}
