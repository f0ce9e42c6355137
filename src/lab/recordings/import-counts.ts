import type { Loss, LossReason } from './importer.js';
import type { EntryOf, RecordedEntry, RecordingFormat } from './neutral-session.js';
import { isShell, readsOfCall } from './read-calls.js';

type Role = EntryOf<'message'>['role'];

/** What one session or several hold. Entries copied from a parent session are counted like the others, and once more under `copied`. */
export interface SessionCounts {
  readonly messages: Readonly<Record<Role, number>>;
  /** System prompts that the session entries carry themselves. */
  readonly prompts: number;
  /** Items of the transcript that the importer counted itself (`OnItem`); 0 for formats whose items follow from the entries. */
  readonly items: number;
  readonly calls: number;
  readonly results: number;
  /** Reads of files by calls: see `readsOfCall`. */
  readonly reads: number;
  /** Those of `reads` that a command line did. */
  readonly shell_reads: number;
  /** Files that were attached to a prompt, or that the program put into the context, without a call. */
  readonly attached_files: number;
  readonly compactions: number;
  readonly events: number;
  readonly copied: number;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends object ? Mutable<T[K]> : T[K] };

const keysOf = <T extends object>(record: T): (keyof T)[] => Object.keys(record) as (keyof T)[];

const noCounts = (): Mutable<SessionCounts> => ({
  messages: { user: 0, assistant: 0, system: 0, developer: 0 },
  prompts: 0,
  items: 0,
  calls: 0,
  results: 0,
  reads: 0,
  shell_reads: 0,
  attached_files: 0,
  compactions: 0,
  events: 0,
  copied: 0,
});

const COUNT: { readonly [K in RecordedEntry['kind']]: (counts: Mutable<SessionCounts>, entry: EntryOf<K>) => void } = {
  session(counts, { system_prompt }) {
    if (system_prompt !== undefined) counts.prompts += 1;
  },
  message(counts, { role }) {
    counts.messages[role] += 1;
  },
  call(counts, { tool, args }) {
    counts.calls += 1;
    const reads = readsOfCall(tool, args);
    counts.reads += reads;
    if (isShell(tool)) counts.shell_reads += reads;
  },
  result(counts) {
    counts.results += 1;
  },
  compaction(counts) {
    counts.compactions += 1;
  },
  event(counts, { name, files }) {
    counts.events += 1;
    if (name === 'file-attached') counts.attached_files += files?.length ?? 0;
  },
};

function count<K extends RecordedEntry['kind']>(counts: Mutable<SessionCounts>, kind: K, entry: EntryOf<K>): void {
  COUNT[kind](counts, entry);
  if ('copied' in entry && entry.copied === true) counts.copied += 1;
}

/** Counts the entries of an import, session by session, while it runs. */
export class ImportCounter {
  readonly #sessions = new Map<string, Mutable<SessionCounts>>();

  add(entry: RecordedEntry): void {
    const id = entry.kind === 'session' ? entry.native_id : entry.session;
    count(this.#of(id), entry.kind, entry);
  }

  /** Counts an item that the importer reported to `OnItem`. */
  addItem(session: string): void {
    this.#of(session).items += 1;
  }

  /** The counts of one session; undefined where it has no entry. */
  session(id: string): SessionCounts | undefined {
    return this.#sessions.get(id);
  }

  /** The sum over all sessions. */
  total(): SessionCounts {
    const sum = noCounts();
    for (const counts of this.#sessions.values()) {
      for (const role of keysOf(sum.messages)) sum.messages[role] += counts.messages[role];
      for (const field of keysOf(sum)) if (field !== 'messages') sum[field] += counts[field];
    }
    return sum;
  }

  #of(session: string): Mutable<SessionCounts> {
    const counts = this.#sessions.get(session) ?? noCounts();
    this.#sessions.set(session, counts);
    return counts;
  }
}

const messages = ({ messages: { user, assistant, system, developer } }: SessionCounts): number => user + assistant + system + developer;

const TRANSCRIPT_ITEMS: Readonly<Partial<Record<RecordingFormat, (counts: SessionCounts) => number>>> = {
  // Records of the user and of the assistant; the messages of the file.
  'claude-code': ({ items }) => items,
  cline: ({ items }) => items,
  // Calls and their outputs are items beside the messages.
  codex: (counts) => messages(counts) + counts.calls + counts.results,
  // Calls are blocks of messages, results are messages.
  pi: (counts) => messages(counts) + counts.results,
  // The prompt is the first item of the list.
  'swe-agent': (counts) => counts.prompts + messages(counts) + counts.results,
  'mini-swe-agent': (counts) => counts.prompts + messages(counts) + counts.results,
  'openai-chat': (counts) => counts.prompts + messages(counts) + counts.results,
  // Calls and their answers are in the messages; notes of the program are messages too.
  'gemini-cli': (counts) => messages(counts) + counts.events,
};

/**
 * The length of a session's transcript as its own format counts it, for comparing with counts made by others: what the importer counted itself, else a rule
 * over the entries, else messages and results.
 */
export function transcriptItems(format: RecordingFormat, counts: SessionCounts): number {
  return (TRANSCRIPT_ITEMS[format] ?? ((all: SessionCounts) => messages(all) + all.results))(counts);
}

const KEPT_LOSSES = 1_000;

/** The losses of an import: all of them are counted, the first thousand are kept. */
export class LossList {
  readonly each: Loss[] = [];
  readonly byReason: Partial<Record<LossReason, number>> = {};
  total = 0;

  add(loss: Loss): void {
    this.total += 1;
    this.byReason[loss.reason] = (this.byReason[loss.reason] ?? 0) + 1;
    if (this.each.length < KEPT_LOSSES) this.each.push(loss);
  }
}
