import type { SessionId } from '../../objects/ids.js';
import type { SessionState } from '../../session/session-state.js';
import type { EntryOf, RecordedEntry } from '../recordings/neutral-session.js';
import { type ContextMeasure, ContextMeter, type CountTokens } from './context-measure.js';
import type { SessionDriver } from './session-driver.js';

/** A call that waits for its result. */
export interface OpenRecordedCall {
  readonly entry: EntryOf<'call'>;
  /** When it was made, milliseconds since 1970. */
  readonly at: number;
}

/** The last step before an entry and after it. */
interface Around {
  readonly before: number;
  readonly after: number;
}

/** What a recorded session is made of. */
interface RecordedSessionParts {
  readonly entry: EntryOf<'session'>;
  readonly driver: SessionDriver;
  readonly countTokens: CountTokens | undefined;
  /** The session that it is a branch of. */
  readonly branchOf?: SessionId;
}

/** One session of a recording while it is replayed, or the branch of one that went back. */
export class RecordedSession {
  readonly entry: EntryOf<'session'>;
  readonly driver: SessionDriver;
  readonly meter: ContextMeter;
  /** The session that it is a branch of. */
  readonly branchOf: SessionId | undefined;
  /** Calls without a result yet, in the order in which they were made. */
  readonly open = new Map<string, OpenRecordedCall>();
  readonly contexts: ContextMeasure[] = [];
  /** Whether the model is speaking: its context was assembled when it began. */
  answering = false;
  /** The session as the model had it before it when it began to speak. */
  seen: SessionState;
  /** Files that were put into the context without a call. */
  attached = 0;
  readonly #countTokens: CountTokens | undefined;
  /** Steps around the entries, by the recording's ids of them. */
  readonly #places = new Map<string, Around>();
  /** The last step before each prompt of the person. */
  readonly #prompts: number[] = [];

  constructor({ entry, driver, countTokens, branchOf }: RecordedSessionParts) {
    this.entry = entry;
    this.driver = driver;
    this.seen = driver.state;
    this.meter = new ContextMeter(countTokens);
    this.branchOf = branchOf;
    this.#countTokens = countTokens;
  }

  get cwd(): string | undefined {
    return this.entry.cwd;
  }

  /** Remembers which steps an entry stands between; `before` is the last one in front of it. */
  note(entry: Exclude<RecordedEntry, { kind: 'session' }>, before: number): void {
    if (entry.kind === 'message' && entry.origin === 'person') this.#prompts.push(before);
    if (entry.native_id === undefined) return;
    const known = this.#places.get(entry.native_id);
    this.#places.set(entry.native_id, { before: known?.before ?? before, after: this.driver.state.seq });
  }

  /** The last step that a rewind of this conversation keeps; undefined where the recording does not tell it, or names what is not here. */
  keptBy({ undone_from, undone_turns, parent_id }: EntryOf<'event'>): number | undefined {
    if (undone_turns !== undefined) return this.#prompts.at(-undone_turns);
    return this.#places.get(undone_from ?? '')?.before ?? this.#places.get(parent_id ?? '')?.after;
  }

  /** The branch that goes on behind a step. */
  branch(driver: SessionDriver, kept: number): RecordedSession {
    const branch = new RecordedSession({ entry: this.entry, driver, countTokens: this.#countTokens, branchOf: this.driver.id });
    for (const [id, around] of this.#places) if (around.after <= kept) branch.#places.set(id, around);
    branch.#prompts.push(...this.#prompts.filter((before) => before < kept));
    return branch;
  }
}
