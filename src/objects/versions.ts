import { posix } from 'node:path';
import { defined } from '../values/defined.js';
import type { Json } from './canonical-json.js';
import {
  chatObjectId,
  type ObjectId,
  type SessionId,
  type Sha256,
  sessionObjectId,
  systemPromptObjectId,
} from './ids.js';
import type { Turn } from './object-type.js';
import { type ObjectVersion, sealVersion } from './seal.js';
import type { SessionSets } from './sets.js';
import type { FilesystemSource } from './source.js';

/**
 * Returns the lower-case extension of a path's basename without its dot, or `none` (decision A5).
 */
export function fileType(path: string): string {
  const extension = posix.extname(path);
  return extension.length > 1 ? extension.slice(1).toLowerCase() : 'none';
}

function file(source: FilesystemSource, content: string | null, file_hash: Sha256 | null): ObjectVersion<'file'> {
  const fields = { file_type: fileType(source.path), char_count: content?.length ?? 0 };
  return sealVersion({ type: 'file', source, fields, content, file_hash });
}

/**
 * Creates the version of a file that was read as text [§5.6]. `file_hash` covers its raw bytes,
 * `content` is the stored text (decisions A3, C6).
 */
export const indexedFile = (source: FilesystemSource, content: string, fileHash: Sha256): ObjectVersion<'file'> =>
  file(source, content, fileHash);

/**
 * Creates the version of a file that was read but is not UTF-8 text: hashed, without content
 * (decision C2).
 */
export const nonTextFile = (source: FilesystemSource, fileHash: Sha256): ObjectVersion<'file'> =>
  file(source, null, fileHash);

/** Creates the version of a file that was only mentioned: a discovery stub [§5.6]. */
export const fileStub = (source: FilesystemSource): ObjectVersion<'file'> => file(source, null, null);

/**
 * Creates the version of a file that is confirmed deleted. The document equals a stub, and the
 * store's `gone` mark distinguishes them (decision C3).
 */
export const deletedFile = fileStub;

/**
 * The fields of a tool call object [§2.6]. Absent optional members are left out of the document
 * (decision A2).
 */
export interface ToolcallInput {
  readonly id: ObjectId;
  readonly tool: string;
  readonly args: { readonly [key: string]: Json };
  readonly argsDisplay?: string;
  readonly status: 'ok' | 'fail';
  readonly chatRef: ObjectId;
  readonly fileRefs?: readonly ObjectId[];
  /**
   * The tool's output as stored: whole, or its head and tail if it exceeds the cap (decision B8).
   */
  readonly content: string | null;
}

/** Creates the single version of a tool call [§2.6, §5.7]. */
export function toolcallVersion(input: ToolcallInput): ObjectVersion<'toolcall'> {
  const { id, tool, args, argsDisplay, status, chatRef, fileRefs, content } = input;
  return sealVersion({
    type: 'toolcall',
    id,
    content,
    file_hash: null,
    fields: {
      tool,
      args,
      ...defined({ args_display: argsDisplay }),
      status,
      chat_ref: chatRef,
      ...(fileRefs === undefined || fileRefs.length === 0 ? {} : { file_refs: fileRefs }),
    },
  });
}

/**
 * Creates the version of a session's chat at one moment [§2.6]. `turn_count` and `toolcall_refs`
 * follow from the turns.
 */
export function chatVersion(session: SessionId, turns: readonly Turn[]): ObjectVersion<'chat'> {
  const toolcall_refs = turns.flatMap(({ messages }) => messages.flatMap((message) => message.toolcall_refs ?? []));
  const fields = { turns, session_ref: sessionObjectId(session), turn_count: turns.length, toolcall_refs };
  return sealVersion({ type: 'chat', id: chatObjectId(session), fields, content: null, file_hash: null });
}

/**
 * Creates the version of a session's system prompt [§2.6]. The content is null if the harness has
 * set no prompt.
 */
export function systemPromptVersion(session: SessionId, prompt: string | null): ObjectVersion<'system_prompt'> {
  return sealVersion({
    type: 'system_prompt',
    id: systemPromptObjectId(session),
    fields: {},
    content: prompt,
    file_hash: null,
  });
}

/**
 * Creates the version of a session object at one moment [§3.1]. Arrays keep insertion order
 * (decision A6).
 */
export function sessionVersion(session: SessionId, sets: SessionSets): ObjectVersion<'session'> {
  const fields = {
    session_id: session,
    chat_ref: chatObjectId(session),
    system_prompt_ref: systemPromptObjectId(session),
    session_index: sets.index as readonly ObjectId[],
    metadata_pool: sets.index as readonly ObjectId[],
    active_set: sets.active as readonly ObjectId[],
    pinned_set: sets.pinned as readonly ObjectId[],
  };
  return sealVersion({ type: 'session', id: sessionObjectId(session), fields, content: null, file_hash: null });
}
