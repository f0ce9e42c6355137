import type { ObjectId, SessionId, Sha256 } from './ids.js';
import type { Message } from './object-type.js';
import type { SetChanges } from './sets.js';

/** The rule by which a turn began (decision B7). */
export type TurnRule = 'user-message' | 'client-turn' | 'pause' | 'first-step';

/**
 * A part of an answer: new text, or a range of stored text in UTF-16 units. The range refers to the
 * call's whole output, or to another object's whole text.
 */
export type AnswerPiece = string | { readonly at: number; readonly chars: number; readonly id?: ObjectId };

/** The data that proves an agent's answer later (decision E7). */
export interface AnswerProof {
  readonly sha256: Sha256;
  readonly chars: number;
  /**
   * The parts of the answer. Absent if the answer is the call's output itself, or shares too little
   * with stored text.
   */
  readonly pieces?: readonly AnswerPiece[];
}

/**
 * A harness's change of its own history that is neither message nor call (decision F1). It deletes
 * nothing of the session.
 * - `lost`: the step here was acknowledged, and its journal was damaged before the step reached the
 *   database (reading 0011)
 * - `bypassed`: a model call here used the harness's own list, because ours was late or failed
 */
export type HistoryEventKind =
  | 'compacted'
  | 'shortened'
  | 'diverged'
  | 'forked'
  | 'paused'
  | 'resumed'
  | 'bypassed'
  | 'lost';

/**
 * An event in the history of a session's harness. It is stored with a step, because the chat alone
 * does not show it.
 */
export interface HistoryEvent {
  readonly kind: HistoryEventKind;
  /** Number of unchanged entries at the beginning of the harness's history. */
  readonly kept?: number;
  /** Number of known entries that the harness no longer sends. */
  readonly missing?: number;
  /** The first step behind a compaction's summary that the harness still sends. */
  readonly keptFrom?: number;
  /** Steps that the harness no longer sends: without `detail` only the results of their calls. */
  readonly gone?: readonly number[];
  /**
   * The harness's own words, such as the summary of a compaction or the name of the other session.
   */
  readonly detail?: string;
}

/**
 * A provider's report on one model call, in tokens unless stated otherwise, as far as the harness
 * passes it on.
 */
export interface ModelUsage {
  /** Request tokens that were neither read from a cache nor written to one. */
  readonly input?: number;
  readonly output?: number;
  /** Tokens read from the provider's prompt cache, and tokens written to it. */
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** The part of `cacheWrite` that lives for an hour. If absent, all live for five minutes. */
  readonly cacheWriteHour?: number;
  /**
   * The provider's own reason for a cache miss on the previous request, and the number of tokens
   * missed.
   */
  readonly cacheMiss?: { readonly reason: string; readonly tokens?: number };
  /**
   * Thinking blocks that the provider dropped from the request because they are bound to other
   * content.
   */
  readonly thinkingDropped?: number;
  /** The model that answered, if a recording names it. */
  readonly model?: string;
  /** The cost of the call as the agent recorded it, in US dollars. */
  readonly cost?: number;
}

/**
 * One step of a session (decision G3): one message, or one tool call, or neither, with the changes
 * that it made to the sets. A step is written once and never rewritten. A session is the fold of
 * its steps.
 */
export interface Step {
  readonly session: SessionId;
  /** Counts from 1, without gaps, within a session. */
  readonly seq: number;
  /** The turn of the step, from 1. */
  readonly turn: number;
  /**
   * Time of acknowledgement, in milliseconds since 1970. Never decreases within a session. Steps of
   * the same millisecond are ordered by `seq` (decision F7).
   */
  readonly at: number;
  /**
   * Present on the first step of a turn: the rule that began it, with the client's own turn id if
   * it sent one.
   */
  readonly opens?: { readonly rule: TurnRule; readonly ref?: string };
  readonly message?: Message;
  /**
   * `by` is the step of the message of this turn that made the call, if another message came in
   * between.
   */
  readonly call?: { readonly id: ObjectId; readonly answer?: AnswerProof; readonly by?: number };
  readonly changes: SetChanges;
  /**
   * Ids that this step activated explicitly, including ids that were already active. They count as
   * fresh since this step (decision D4).
   */
  readonly fresh?: readonly ObjectId[];
  /**
   * The harness's own id of the message (decision B3). Stored with the step alone: no hash covers
   * it, and readers of documents do not see it.
   */
  readonly native?: string;
  /**
   * For a message of the model, the provider's usage report on its call. Stored with the step
   * alone, like `native`.
   */
  readonly usage?: ModelUsage;
  /**
   * A change to the harness's own history before this step. A step may consist of an event alone.
   */
  readonly event?: HistoryEvent;
  /**
   * For a call, the files that could not be indexed as reported, with the reason, and those whose
   * lines changed without a recorded call.
   */
  readonly notes?: readonly string[];
  /**
   * The author of a set change that was not made by the agent, its harness or auto-collapse. Such a
   * step is neither message nor call (decision 0021).
   */
  readonly by?: 'person';
  /** The step whose set changes this step reverts. */
  readonly undoes?: number;
  /** Set if an erasure removed text of the step. A mark replaces the text. */
  readonly erased?: true;
}
