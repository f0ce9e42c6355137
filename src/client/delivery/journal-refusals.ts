import type { Journal } from '../../journal/journal.js';
import type { RefusedRecords } from '../../journal/refused-note.js';
import type { SessionId } from '../../objects/ids.js';
import type { NotKeptError } from './not-kept.js';
import type { SessionWrite } from './session-write.js';

/** A record that the database refused for good. */
interface Refusal {
  readonly write: SessionWrite;
  readonly sequence: number;
  readonly why: NotKeptError;
}

/** The stored part of a refusal. It omits the write, whose texts may be long. */
interface KeptRefusal {
  readonly session: SessionId;
  readonly step: number | undefined;
  readonly reason: string;
  readonly at: string;
}

/** Maximum length of a stored reason. A reason may quote the node's response. */
const LONGEST_REASON = 2_000;

function bySession(refusals: ReadonlyMap<number, KeptRefusal>): readonly RefusedRecords[] {
  const found = new Map<SessionId, RefusedRecords>();
  for (const [, { session, step, reason, at }] of [...refusals].toSorted(([a], [b]) => a - b)) {
    const before = found.get(session);
    const steps =
      step === undefined ? (before?.steps ?? null) : ([before?.steps?.[0] ?? step, step] as [number, number]);
    found.set(session, { session, steps, records: (before?.records ?? 0) + 1, reason: before?.reason ?? reason, at });
  }
  return [...found.values()];
}

/**
 * Records which writes of this process's journals the database refused for good, and updates the
 * notes of refusals beside the journals.
 */
export class JournalRefusals {
  readonly #onNotice: (line: string) => void;
  readonly #refusals = new WeakMap<Journal, Map<number, KeptRefusal>>();
  readonly #told = new Set<string>();

  /** `onNotice` receives one line per session and journal. */
  constructor(onNotice: (line: string) => void) {
    this.#onNotice = onNotice;
  }

  /** Records a refusal. It replaces an earlier refusal of the same record. */
  add(journal: Journal, { write: { session, step }, sequence, why }: Refusal): void {
    const refusals = this.#refusals.get(journal) ?? new Map<number, KeptRefusal>();
    this.#refusals.set(journal, refusals);
    const reason = why.what.slice(0, LONGEST_REASON);
    refusals.set(sequence, { session, step: step?.seq, reason, at: new Date().toISOString() });
    journal.noteRefused(() => bySession(refusals));
    const key = `${journal.owner}\0${session}`;
    if (!this.#told.has(key)) this.#onNotice(`the journal ${journal.owner}: ${why.message}`);
    this.#told.add(key);
  }

  /**
   * Marks a record as stored. The first call for a journal discards the note of its former process,
   * because all those records are retried.
   */
  arrived(journal: Journal, sequence: number): void {
    const known = this.#refusals.get(journal);
    const refusals = known ?? new Map<number, KeptRefusal>();
    this.#refusals.set(journal, refusals);
    if (refusals.delete(sequence) || known === undefined) journal.noteRefused(() => bySession(refusals));
  }
}
