import type { ObjectId, SessionId, Sha256 } from './ids.js';
import type { Message } from './object-type.js';
import type { SetChanges } from './sets.js';

/** What made a turn begin (decision B7). */
export type TurnRule = 'user-message' | 'client-turn' | 'pause' | 'first-step';

/** A part of an answer: text of its own, or a range of what is stored anyway, in UTF-16 units: of the call's whole output, or of another object's whole text. */
export type AnswerPiece = string | { readonly at: number; readonly chars: number; readonly id?: ObjectId };

/** How the answer that an agent was given can be proved later (decision E7). */
export interface AnswerProof {
  readonly sha256: Sha256;
  readonly chars: number;
  /** What it was made of; absent where it is the call's output itself, and where it shares too little with what is stored. */
  readonly pieces?: readonly AnswerPiece[];
}

/**
 * What a harness did to its own history that is no message and no call (decision F1); nothing of the session is deleted for it. `lost`: the step that stood here was
 * acknowledged, and the journal that held it was damaged before the database had it (reading 0011). `bypassed`: a model call at this place went out with the harness's
 * own list, because ours was late or failed.
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

/** An event in the life of a session's harness, kept with a step because the chat alone does not show it. */
export interface HistoryEvent {
  readonly kind: HistoryEventKind;
  /** Entries at the beginning of the harness's history that are as they were. */
  readonly kept?: number;
  /** Known entries that the harness no longer sends. */
  readonly missing?: number;
  /** The harness's own words: the summary of a compaction, the name of the other session. */
  readonly detail?: string;
}

/** What a provider says of one call of a model, in tokens where nothing else is said, as far as the harness passes it on. */
export interface ModelUsage {
  /** Tokens of the request that no cache had and none took up. */
  readonly input?: number;
  readonly output?: number;
  /** Tokens that the provider's prompt cache had, and that it took up. */
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
  /** Why its cache did not have the whole request before, in its own word, and how many tokens it would have had. */
  readonly cacheMiss?: { readonly reason: string; readonly tokens?: number };
  /** Blocks of thinking that it left out of the request, since they are bound to something else. */
  readonly thinkingDropped?: number;
}

/**
 * One step of a session (decision G3): one message, or one tool call, or neither, with the changes of the sets that it caused.
 * Written once, never rewritten; a session is the fold of its steps.
 */
export interface Step {
  readonly session: SessionId;
  /** From 1, without gaps within a session. */
  readonly seq: number;
  /** The turn that the step belongs to, from 1. */
  readonly turn: number;
  /** Moment of acknowledgement, milliseconds since 1970; never falls within a session. Steps of one millisecond are ordered by `seq` (decision F7). */
  readonly at: number;
  /** Present on the first step of a turn: which rule began it, with the client's own turn id where it sent one. */
  readonly opens?: { readonly rule: TurnRule; readonly ref?: string };
  readonly message?: Message;
  /** `by`: the step of the message of this turn that made the call, where another one came in between. */
  readonly call?: { readonly id: ObjectId; readonly answer?: AnswerProof; readonly by?: number };
  readonly changes: SetChanges;
  /** Ids that were explicitly activated in this step, also those active before: they count as fresh from here on (decision D4). */
  readonly fresh?: readonly ObjectId[];
  /** The harness's own id of the message (decision B3): kept with the step alone, no hash covers it and no reader of documents sees it. */
  readonly native?: string;
  /** Of a message of the model: what its call took, as the provider reported it; kept with the step alone, like `native`. */
  readonly usage?: ModelUsage;
  /** What happened to the harness's own history before this step; a step may be nothing but an event. */
  readonly event?: HistoryEvent;
  /** Of a call: what of its files could not be taken up as it was reported, and why. */
  readonly notes?: readonly string[];
  /** Who changed the sets where that was not the agent, its harness or the window: such a step is neither message nor call (decision 0021). */
  readonly by?: 'person';
  /** The step whose changes of the sets this one takes back. */
  readonly undoes?: number;
}
