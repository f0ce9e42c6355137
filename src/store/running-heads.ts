import type { ChatLog } from '../objects/chat-log.js';
import { assignedIdentityHash, objectHash } from '../objects/hashes.js';
import type { GrowingSets, HeadHashes } from '../objects/head-hashes.js';
import { chatObjectId, type ObjectId, type SessionId, type Sha256, sessionObjectId, systemPromptObjectId } from '../objects/ids.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { HeadMarks } from './head.js';

/** A session under way, as its two heads need it. */
export interface RunningSession extends GrowingSets {
  readonly id: SessionId;
  readonly chat: ChatLog;
}

function head(type: 'chat' | 'session', id: ObjectId, metadata_hash: Sha256, fields: object, marks: HeadMarks): StoredDocument {
  const hashes = { file_hash: null, content_hash: null, metadata_hash };
  const document = {
    'xt/id': id,
    type,
    source: null,
    content: null,
    ...fields,
    identity_hash: assignedIdentityHash(type, id),
    ...hashes,
    object_hash: objectHash(hashes),
    ...marks,
  };
  return document as unknown as StoredDocument;
}

/** The head that `toStored` makes of the chat's version, without making the version: its turns are hashed, not copied. */
export function runningChatHead({ id, chat }: RunningSession, hashes: HeadHashes, marks: HeadMarks): StoredDocument {
  const turn_count = chat.closed.size + (chat.running.isEmpty() ? 0 : 1);
  return head('chat', chatObjectId(id), hashes.chat(chat), { session_ref: sessionObjectId(id), turn_count }, marks);
}

/** The head that `toStored` makes of the session's version, without making the version. */
export function runningSessionHead(session: RunningSession, hashes: HeadHashes, marks: HeadMarks): StoredDocument {
  const { id } = session;
  const fields = { session_id: id, chat_ref: chatObjectId(id), system_prompt_ref: systemPromptObjectId(id) };
  return head('session', sessionObjectId(id), hashes.session(session), fields, marks);
}
