import { chatAfterAll, NO_CHAT, turnsOf } from '../objects/chat-log.js';
import { type SessionId, sessionId } from '../objects/ids.js';
import type { ObjectVersion } from '../objects/seal.js';
import type { Step } from '../objects/step.js';
import { chatVersion, sessionVersion } from '../objects/versions.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { fromStored, marksOf } from './head.js';
import type { FoundSets } from './read-steps.js';

/** Whether an object's typed fields lie in its session's steps, not in its head (decision G2). */
export const isFolded = ({ type }: StoredDocument): boolean => type === 'chat' || type === 'session';

/** The session that a folded object is of. */
export const sessionOfFolded = ({ 'xt/id': id }: StoredDocument): SessionId => sessionId(String(id).slice(String(id).indexOf(':') + 1));

/** At a turn's ends the stored hashes are checked; inside a turn a reader gets head plus steps, sealed afresh (decision G4). */
const isWhole = (head: StoredDocument, last: number): boolean => (marksOf(head).upto ?? 0) === last;

/** A session's wrapper of its head and its sets. @throws {DocumentError} `hash-mismatch` */
export function foldedSession(head: StoredDocument, { sets, seq }: FoundSets): ObjectVersion {
  const { index, active, pinned } = sets;
  const fields = { session_index: index, metadata_pool: index, active_set: active, pinned_set: pinned };
  return isWhole(head, seq) ? fromStored(head, undefined, fields) : sessionVersion(sessionOfFolded(head), sets);
}

/** A chat of its head and its steps. @throws {DocumentError} `hash-mismatch` */
export function foldedChat(head: StoredDocument, steps: readonly Step[]): ObjectVersion {
  const sealed = chatVersion(sessionOfFolded(head), turnsOf(chatAfterAll(NO_CHAT, steps)));
  const { turns, toolcall_refs } = sealed;
  return isWhole(head, steps.at(-1)?.seq ?? 0) ? fromStored(head, undefined, { turns, toolcall_refs }) : sealed;
}
