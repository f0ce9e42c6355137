import type { Loss, LossReason } from './importer.js';
import type { EntryOf, RecordedEntry, RecordingFormat } from './neutral-session.js';
import { isShell, readsOfCall } from './read-calls.js';

type Role = EntryOf<'message'>['role'];

/** What a session, or several together, hold. Entries copied from a parent session are counted too, and once more under `copied`. */
export interface SessionCounts {
  readonly messages: Readonly<Record<Role, number>>;
  /** System prompts that stand in the session itself. */
  readonly prompts: number;
  /** Items of the transcript as its format counts them; 0 where the importer leaves them to be counted by the entries. */
  readonly items: number;
  readonly calls: number;
  readonly results: number;
  /** Reads of files by calls: see `readsOfCall`. */
  readonly reads: number;
  /** Those of them that stand in a command line. */
  readonly shell_reads: number;
  /** Files that were attached to prompts, or put into the context by the program: no calls. */
  readonly attached_files: number;
  readonly compactions: number;
  readonly events: number;
  readonly copied: number;
}

/** What an import brought and lost. */
export interface ImportCounts extends SessionCounts {
  readonly sessions: number;
  readonly losses: Readonly<Partial<Record<LossReason, number>>>;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] extends object ? Mutable<T[K]> : T[K] };

const none = (): Mutable<SessionCounts> => ({
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

/** Counts an import while it runs. */
export class ImportCounter {
  readonly #sessions = new Map<string, Mutable<SessionCounts>>();
  readonly #losses: Partial<Record<LossReason, number>> = {};

  add(entry: RecordedEntry): void {
    const id = entry.kind === 'session' ? entry.native_id : entry.session;
    count(this.#of(id), entry.kind, entry);
  }

  /** An item of the transcript of a session, as its importer tells them. */
  addItem(session: string): void {
    this.#of(session).items += 1;
  }

  addLoss({ reason }: Loss): void {
    this.#losses[reason] = (this.#losses[reason] ?? 0) + 1;
  }

  /** Of one session; undefined where it is unknown. */
  session(id: string): SessionCounts | undefined {
    return this.#sessions.get(id);
  }

  /** Of all of them. */
  total(): ImportCounts {
    const sum = none();
    for (const counts of this.#sessions.values()) {
      for (const role of ['user', 'assistant', 'system', 'developer'] as const) sum.messages[role] += counts.messages[role];
      for (const field of [
        'prompts',
        'items',
        'calls',
        'results',
        'reads',
        'shell_reads',
        'attached_files',
        'compactions',
        'events',
        'copied',
      ] as const)
        sum[field] += counts[field];
    }
    return { ...sum, sessions: this.#sessions.size, losses: { ...this.#losses } };
  }

  #of(session: string): Mutable<SessionCounts> {
    const counts = this.#sessions.get(session) ?? none();
    this.#sessions.set(session, counts);
    return counts;
  }
}

const messages = ({ messages: { user, assistant, system, developer } }: SessionCounts): number => user + assistant + system + developer;

/** Items of a transcript as its own format counts them. */
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
 * How many items the transcript of a session has in the words of its own format: for comparing with what others counted. As its importer told them, else by a
 * rule over the entries; where a format has no rule of its own, messages and results.
 */
export function transcriptItems(format: RecordingFormat, counts: SessionCounts): number {
  return (TRANSCRIPT_ITEMS[format] ?? ((all: SessionCounts) => messages(all) + all.results))(counts);
}
