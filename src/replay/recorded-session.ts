import type { EntryOf } from '../recordings/neutral-session.js';
import type { SessionState } from '../session/session-state.js';
import { type ContextMeasure, ContextMeter, type CountTokens } from './context-measure.js';
import type { SessionDriver } from './session-driver.js';

/** A call that waits for its result. */
export interface OpenRecordedCall {
  readonly entry: EntryOf<'call'>;
  /** When it was made, milliseconds since 1970. */
  readonly at: number;
}

/** One session of a recording while it is replayed. */
export class RecordedSession {
  readonly entry: EntryOf<'session'>;
  readonly driver: SessionDriver;
  readonly meter: ContextMeter;
  /** Calls without a result yet, in the order in which they were made. */
  readonly open = new Map<string, OpenRecordedCall>();
  readonly contexts: ContextMeasure[] = [];
  /** Whether the model is speaking: its context was assembled when it began. */
  answering = false;
  /** The session as the model had it before it when it began to speak. */
  seen: SessionState;
  /** Files that were put into the context without a call. */
  attached = 0;

  constructor(entry: EntryOf<'session'>, driver: SessionDriver, countTokens: CountTokens | undefined) {
    this.entry = entry;
    this.driver = driver;
    this.seen = driver.state;
    this.meter = new ContextMeter(countTokens);
  }

  get cwd(): string | undefined {
    return this.entry.cwd;
  }
}
