import { chatObjectId, type ObjectId, type SessionId, sessionObjectId, systemPromptObjectId } from './ids.js';
import type { Turn } from './object-type.js';
import { type ObjectVersion, sealVersion } from './seal.js';
import type { SessionSets } from './sets.js';

/** The chat of a session at one moment [§2.6]: `turn_count` and `toolcall_refs` follow from the turns. */
export function chatVersion(session: SessionId, turns: readonly Turn[]): ObjectVersion<'chat'> {
  const toolcall_refs = turns.flatMap(({ messages }) => messages.flatMap((message) => message.toolcall_refs ?? []));
  const fields = { turns, session_ref: sessionObjectId(session), turn_count: turns.length, toolcall_refs };
  return sealVersion({ type: 'chat', id: chatObjectId(session), fields, content: null, file_hash: null });
}

/** The system prompt of a session [§2.6]; null when the harness has set none. */
export function systemPromptVersion(session: SessionId, prompt: string | null): ObjectVersion<'system_prompt'> {
  return sealVersion({ type: 'system_prompt', id: systemPromptObjectId(session), fields: {}, content: prompt, file_hash: null });
}

/** The session wrapper at one moment [§3.1]; arrays keep insertion order (decision A6). */
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
