import type { Json } from '../../objects/canonical-json.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';

declare const brand: unique symbol;

/**
 * The name of an entry. It is the same at every basis and in a fork, and consists of letters and
 * digits.
 *
 * - `system`: the system prompt
 * - `m41`: the message of step 41
 * - `c41`: a placeholder message for the calls of step 41 and later steps
 * - `r42`: the result recorded by step 42
 * - `a…`: an approval
 */
export type EntryId = string & { readonly [brand]: 'EntryId' };

/** The position of an entry in its session. */
export interface EntryPlace {
  /** The number of the turn, from 1. 0 for the system prompt. */
  readonly turn: number;
  /** The number of the entry within its turn, from 1, in the order of the projection. */
  readonly index: number;
  /**
   * The step of the entry. 0 for the system prompt. Results follow their call, so steps are not
   * always ascending.
   */
  readonly seq: number;
  /**
   * Time at which the entry's step was acknowledged, in milliseconds since 1970. For the prompt,
   * the beginning of its valid time.
   */
  readonly at: number;
}

interface EntryText extends EntryPlace {
  readonly id: EntryId;
  /** Hash of the text. For a result, the `content_hash` of its call, which covers the same text. */
  readonly sha256: Sha256;
  /** Tokens of the text, by the projection's counter. */
  readonly tokens: number;
}

interface MessageText extends EntryText {
  readonly text: string;
  /** The reported role: `user`, `assistant`, `model`, `developer` or another one. */
  readonly role: string;
  readonly name?: string;
  /** The harness's own id of the message. */
  readonly native?: string;
}

/** The system prompt, or a system message in the chat. */
export interface SystemEntry extends MessageText {
  readonly kind: 'system';
  readonly isPrompt: boolean;
}

/** A message of the user, or of a role other than the model's and the system's. */
export interface UserEntry extends MessageText {
  readonly kind: 'user';
}

/**
 * Text inserted by a harness or a view, in the role of the user and between `<system-reminder>`
 * tags. No human wrote it.
 */
export interface ReminderEntry extends MessageText {
  readonly kind: 'reminder';
}

/** A call in a message of the model. */
export interface EntryCall {
  /** The tool call's object. For a pending call, the id that its object would get. */
  readonly id: ObjectId;
  /**
   * The harness's own id, without the suffix that makes it unique in the database (decision B2).
   */
  readonly native: string;
  readonly tool: string;
  readonly args: Json;
  /**
   * Canonical JSON of the arguments, complete even if the object stores the arguments as a separate
   * text (reading 0005).
   */
  readonly argsText: string;
  /** Tokens of tool name and arguments. */
  readonly tokens: number;
  /** `pending` means that the result has not arrived. */
  readonly state: 'answered' | 'pending';
}

/** A message of the model with its calls. Its text is empty if only the calls are known. */
export interface AssistantEntry extends MessageText {
  readonly kind: 'assistant';
  readonly calls: readonly EntryCall[];
}

/** The result of a call. It always follows the message with the call, in the order of the calls. */
export interface ResultEntry extends EntryText {
  readonly kind: 'result';
  /** The message with the call, and the call's index in the message, from 0. */
  readonly of: EntryId;
  readonly position: number;
  readonly call: ObjectId;
  readonly native: string;
  readonly tool: string;
  readonly status: 'ok' | 'fail';
  /**
   * The stored text. Of a text over 1 MiB, only its beginning and end are stored (decision C6).
   * Null if the call returned no text.
   */
  readonly text: string | null;
  /** The hash of the whole text if `text` is abridged. */
  readonly whole?: Sha256;
  /** Whether the sets hold the result in full at the basis, and whether it is pinned [§3.1]. */
  readonly active: boolean;
  readonly pinned: boolean;
  readonly files: readonly ObjectId[];
  /** The reference line that replaces the result in the chat [§4.1]. */
  readonly line: string;
  readonly lineTokens: number;
}

/** The state of an approval. */
export type ApprovalState = 'pending' | 'approved' | 'denied' | 'cancelled' | 'expired';

/**
 * A requested approval. `text` describes it in one line. Approvals are not messages for a model;
 * each surface shows them in its own form.
 */
export interface ApprovalEntry extends EntryText {
  readonly kind: 'approval';
  readonly text: string;
  readonly approval: string;
  readonly state: ApprovalState;
  readonly tool?: string;
  /** The harness's own id of the call to approve. */
  readonly native?: string;
  readonly reason?: string;
}

/** An entry of a session. */
export type Entry = SystemEntry | UserEntry | AssistantEntry | ResultEntry | ApprovalEntry | ReminderEntry;

/** The basis of a projection. */
export interface ProjectionBasis {
  /** Milliseconds since 1970. */
  readonly validTime: number;
  readonly txId: number;
}

/** The turn that runs at a basis, and what it waits for. */
export interface Running {
  readonly turn: number;
  readonly calls: readonly EntryCall[];
  readonly approvals: readonly EntryId[];
}

/** A named token counter. Every count is stored with the counter's name. */
export interface TokenCounter {
  readonly name: string;
  /**
   * Counts the tokens of any text. A longer text with the same beginning never counts less, except
   * by a few tokens.
   */
  count(text: string): number;
  /** Tokens that a message adds to its text, and a call to its name and arguments. */
  readonly perMessage: number;
  readonly perCall: number;
}
