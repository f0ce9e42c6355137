import type { Json } from '../objects/canonical-json.js';
import type { ObjectId, Sha256 } from '../objects/ids.js';

declare const brand: unique symbol;

/**
 * The name of an entry, the same at every basis that holds it, and in a fork: `system`, `m41` for the message of step 41, `c41` for a message that only stands for
 * the calls from step 41 on, `r42` for the result that step 42 recorded, `a…` for an approval. Letters and digits alone.
 */
export type EntryId = string & { readonly [brand]: 'EntryId' };

/** Where an entry stands in its session. */
export interface EntryPlace {
  /** From 1; 0 for the system prompt. */
  readonly turn: number;
  /** From 1 within its turn, in the order of the projection. */
  readonly index: number;
  /** The step that it came with; 0 for the system prompt. Results stand behind their call, so steps need not rise from entry to entry. */
  readonly seq: number;
  /** When its step was acknowledged, milliseconds since 1970; for the prompt, from when on it holds. */
  readonly at: number;
}

interface EntryText extends EntryPlace {
  readonly id: EntryId;
  /** Of the text; of a result the `content_hash` of its call, which is of the same text. */
  readonly sha256: Sha256;
  /** Of the text, as the projection's counter has it. */
  readonly tokens: number;
}

interface MessageText extends EntryText {
  readonly text: string;
  /** As it was reported: `user`, `assistant`, `model`, `developer` … */
  readonly role: string;
  readonly name?: string;
  /** The harness's own id of the message. */
  readonly native?: string;
}

/** The system prompt, or a message in the role of the system that stands in the chat. */
export interface SystemEntry extends MessageText {
  readonly kind: 'system';
  readonly isPrompt: boolean;
}

/** A message of the user, or of a role that is neither the model's nor the system's. */
export interface UserEntry extends MessageText {
  readonly kind: 'user';
}

/** Text that a harness or a view put in, in the role of the user and between `<system-reminder>` tags: no human wrote it. */
export interface ReminderEntry extends MessageText {
  readonly kind: 'reminder';
}

/** A call that a message of the model makes. */
export interface EntryCall {
  /** The tool call's object; of a pending call the id that its object would get. */
  readonly id: ObjectId;
  /** The harness's own id, without what made it unique in the database (decision B2). */
  readonly native: string;
  readonly tool: string;
  readonly args: Json;
  /** Canonical JSON of the arguments, whole also where the object keeps them as text (reading 0005). */
  readonly argsText: string;
  /** Of tool name and arguments. */
  readonly tokens: number;
  /** `pending`: its result has not come. */
  readonly state: 'answered' | 'pending';
}

/** A message of the model with its calls; its text is empty where only the calls are known. */
export interface AssistantEntry extends MessageText {
  readonly kind: 'assistant';
  readonly calls: readonly EntryCall[];
}

/** What a call answered; always behind the message that made it, in the order of the calls. */
export interface ResultEntry extends EntryText {
  readonly kind: 'result';
  /** The message that made the call, and which of its calls this is, from 0. */
  readonly of: EntryId;
  readonly position: number;
  readonly call: ObjectId;
  readonly native: string;
  readonly tool: string;
  readonly status: 'ok' | 'fail';
  /** As stored: a text of more than 1 MiB has head and tail alone (decision C6). Null where the call gave no text. */
  readonly text: string | null;
  /** The hash of the whole text where `text` is abridged. */
  readonly whole?: Sha256;
  /** Whether the session's sets have it in full at the basis, and whether it is pinned [§3.1]. */
  readonly active: boolean;
  readonly pinned: boolean;
  readonly files: readonly ObjectId[];
  /** The line that stands for it in the chat [§4.1]. */
  readonly line: string;
  readonly lineTokens: number;
}

/** Where an approval stands. */
export type ApprovalState = 'pending' | 'approved' | 'denied' | 'cancelled' | 'expired';

/** An approval that was asked for; `text` says in a line what. No message for a model: a surface shows it in its own way. */
export interface ApprovalEntry extends EntryText {
  readonly kind: 'approval';
  readonly text: string;
  readonly approval: string;
  readonly state: ApprovalState;
  readonly tool?: string;
  /** The harness's own id of the call that it is for. */
  readonly native?: string;
  readonly reason?: string;
}

/** One entry of a session, in the order in which a model is to read them. */
export type Entry = SystemEntry | UserEntry | AssistantEntry | ResultEntry | ApprovalEntry | ReminderEntry;

/** What a projection was read at. */
export interface ProjectionBasis {
  /** Milliseconds since 1970. */
  readonly validTime: number;
  readonly txId: number;
}

/** What of a session is under way at a basis. */
export interface Running {
  readonly turn: number;
  readonly calls: readonly EntryCall[];
  readonly approvals: readonly EntryId[];
}

/** How tokens are counted: one counter by its name, which every count is kept beside. */
export interface TokenCounter {
  readonly name: string;
  /** Of any text; never less for a text of which another one is the beginning, but by a few. */
  count(text: string): number;
  /** What a message takes beside its text, and a call beside its name and arguments. */
  readonly perMessage: number;
  readonly perCall: number;
}
