import type { Json } from './canonical-json.js';
import type { ObjectId, SessionId } from './ids.js';

/**
 * One message of a turn (decision B6). Text parts are joined by a newline, and each other part
 * takes one line. `toolcall_refs` are in call order.
 */
export interface Message {
  readonly role: string;
  readonly text: string;
  readonly name?: string;
  readonly toolcall_refs?: readonly ObjectId[];
}

/** The messages from one user message to the next (decisions B6, B7), numbered from 1. */
export interface Turn {
  readonly turn: number;
  readonly messages: readonly Message[];
}

/** The type-specific fields of each object type [§2.6], exactly as `metadata_hash` covers them. */
export interface FieldsByType {
  readonly file: { readonly file_type: string; readonly char_count: number };
  readonly toolcall: {
    readonly tool: string;
    readonly args: { readonly [key: string]: Json };
    readonly args_display?: string;
    readonly status: 'ok' | 'fail';
    readonly chat_ref: ObjectId;
    readonly file_refs?: readonly ObjectId[];
  };
  readonly chat: {
    readonly turns: readonly Turn[];
    readonly session_ref: ObjectId;
    readonly turn_count: number;
    readonly toolcall_refs: readonly ObjectId[];
  };
  readonly system_prompt: Readonly<Record<never, never>>;
  readonly session: {
    readonly session_id: SessionId;
    readonly chat_ref: ObjectId;
    readonly system_prompt_ref: ObjectId;
    readonly session_index: readonly ObjectId[];
    readonly metadata_pool: readonly ObjectId[];
    readonly active_set: readonly ObjectId[];
    readonly pinned_set: readonly ObjectId[];
  };
}

/** The five object types [§2.1]. */
export type ObjectType = keyof FieldsByType;
/** The types that an agent works with and that enter a session's sets [§2.1]. */
export type ContentType = 'file' | 'toolcall';

type FieldTable = { readonly [T in ObjectType]: { readonly [F in keyof FieldsByType[T]]-?: 'required' | 'optional' } };

/** Every type-specific field, and whether a version requires it [§2.6]. */
export const FIELDS: FieldTable = {
  file: { file_type: 'required', char_count: 'required' },
  toolcall: {
    tool: 'required',
    args: 'required',
    args_display: 'optional',
    status: 'required',
    chat_ref: 'required',
    file_refs: 'optional',
  },
  chat: { turns: 'required', session_ref: 'required', turn_count: 'required', toolcall_refs: 'required' },
  system_prompt: {},
  session: {
    session_id: 'required',
    chat_ref: 'required',
    system_prompt_ref: 'required',
    session_index: 'required',
    metadata_pool: 'required',
    active_set: 'required',
    pinned_set: 'required',
  },
};

/** Whether each type is content or infrastructure, and sourced or unsourced [§2.1]. */
export const KINDS: Readonly<Record<ObjectType, { readonly content: boolean; readonly sourced: boolean }>> = {
  file: { content: true, sourced: true },
  toolcall: { content: true, sourced: false },
  chat: { content: false, sourced: false },
  system_prompt: { content: false, sourced: false },
  session: { content: false, sourced: false },
};

/**
 * Narrows a stored `type` to one of the five. Parts have other types and are not objects (decision
 * G6).
 */
export function isObjectType(value: unknown): value is ObjectType {
  return typeof value === 'string' && Object.hasOwn(FIELDS, value);
}
