import { ModelCallRule } from '../history/rebuild/model-calls.js';
import type { EntryOf } from '../lab/recordings/neutral-session.js';

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

/** The counts of a session at an entry of its recording. */
export interface CountsThen {
  readonly calls: readonly CallCounter['kept'][];
  readonly turns: number;
}

/** A session of a recording whose calls are being counted. */
export interface CountedSession {
  readonly entry: EntryOf<'session'>;
  /**
   * The model calls: `all`, and `counted`, which leaves out answers whose token counts are all
   * zero.
   */
  readonly calls: { readonly all: CallCounter; readonly counted: CallCounter };
  hasTokens: boolean;
  /** Turns of the person that were not taken back. */
  turns: number;
}

/** Returns both counters of a session. */
export const countersOf = ({ calls }: CountedSession): readonly CallCounter[] => [calls.all, calls.counted];

const counterOf = ({ calls, hasTokens }: CountedSession): CallCounter => (hasTokens ? calls.counted : calls.all);
/** Returns the number of calls that the session made itself. */
export const ownCallsOf = (session: CountedSession): number => counterOf(session).own;

/** Returns the session's own calls without those that were taken back. */
export function keptCallsOf(session: CountedSession | undefined): number {
  if (session === undefined) return 0;
  const { kept, hasAnswers } = counterOf(session);
  return hasAnswers ? kept.calls : kept.tools;
}

/** Returns the counts of a session now. */
export const countsOf = (session: CountedSession): CountsThen => ({
  calls: countersOf(session).map(({ kept }) => kept),
  turns: session.turns,
});

/** Whether a session of a recording is a sub-agent of the first one. */
export const isSubAgent = (entry: EntryOf<'session'>, main: EntryOf<'session'> | undefined): boolean =>
  entry !== main && entry.parent?.relation === 'subagent';
