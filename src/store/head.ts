import { type ChatLog, chatAfterAll, NO_CHAT, turnsOf } from '../objects/chat-log.js';
import { DocumentError, quoted } from '../objects/errors.js';
import type { FileAuthor } from '../objects/file-author.js';
import { assignedIdentityHash, hashText, objectHash } from '../objects/hashes.js';
import type { GrowingSets, HeadHashes } from '../objects/head-hashes.js';
import {
  chatObjectId,
  type ObjectId,
  type SessionId,
  type Sha256,
  sessionId,
  sessionObjectId,
  systemPromptObjectId,
} from '../objects/ids.js';
import { isObjectType, type ObjectType } from '../objects/object-type.js';
import { type ObjectVersion, restoreVersion } from '../objects/seal.js';
import type { SessionSets } from '../objects/sets.js';
import type { FilesystemSource } from '../objects/source.js';
import type { Step } from '../objects/step.js';
import { chatVersion, sessionVersion } from '../objects/versions.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { StoreError } from './errors.js';
import { chunkId, INLINE_UNITS, textParts } from './texts.js';

/**
 * The point at which a fork left its parent (decision F2). The fork shares the parent's steps up to
 * `seq` and numbers its own steps after it.
 */
export interface ForkPoint {
  readonly session: SessionId;
  readonly seq: number;
}

/**
 * Storage-only attributes of a head (decision G2). No hash covers them, and readers of versions do
 * not see them.
 */
export interface HeadMarks {
  /** True for a file that is confirmed deleted (decision C3). */
  readonly gone?: boolean;
  /** SHA-256 of the whole text of an abridged tool output, stored as chunks (decisions B8, C6). */
  readonly whole?: Sha256;
  /** Length of a tool call's content in UTF-16 units. Gives sizes without a read of the content. */
  readonly size?: number;
  /** The term of a session's lease (decision F5). */
  readonly epoch?: number;
  /** The last step that a chat's or session's version includes (decision G4). */
  readonly upto?: number;
  /**
   * The fork point that a fork's chat and session continue from (decision F2). Every version names
   * the same point.
   */
  readonly parent?: ForkPoint;
  /**
   * Only on a session's head: the folders of each client that has opened the session. Absent if no
   * client has opened it since this mark was introduced.
   */
  readonly roots?: readonly FilesystemSource[];
  /** The author of a file version that no call wrote, with evidence from the time of the write. */
  readonly author?: FileAuthor;
}

const MARKS = ['gone', 'whole', 'size', 'epoch', 'upto', 'parent', 'roots', 'author'] as const;

/** Fields that are folded from steps and not stored in the head (decisions G2, G4). */
const FOLDED: Readonly<Record<ObjectType, readonly string[]>> = {
  file: [],
  toolcall: [],
  system_prompt: [],
  chat: ['turns', 'toolcall_refs'],
  session: ['session_index', 'metadata_pool', 'active_set', 'pinned_set'],
};

/** The stored form of a version: the head, and the parts for content too long for it. */
export interface StoredParts {
  readonly head: StoredDocument;
  readonly texts: readonly StoredDocument[];
}

/**
 * Splits a version into its head and text parts (divergence G). Nulls stay explicit. If the content
 * is stored in parts, the head omits `content`, and `content_hash` names the parts.
 */
export function toStored(version: ObjectVersion, marks: HeadMarks = {}): StoredParts {
  const head: Record<string, unknown> = { ...version };
  for (const field of FOLDED[version.type]) delete head[field];
  for (const mark of MARKS) if (marks[mark] !== undefined) head[mark] = marks[mark];
  const { content, content_hash } = version;
  if (content === null || content_hash === null || content.length <= INLINE_UNITS)
    return { head: head as StoredDocument, texts: [] };
  delete head.content;
  return { head: head as StoredDocument, texts: textParts(content, content_hash) };
}

/**
 * Checks the hashes of a version that was split elsewhere, except those over fields folded from
 * steps.
 *
 * @throws {DocumentError} `hash-mismatch` if the version is damaged
 */
export function checkedParts(parts: StoredParts): StoredParts {
  const { head, texts } = parts;
  const { content, content_hash, object_hash } = head;
  const text = typeof content === 'string' ? content : texts.map((part) => part.text ?? '').join('');
  const hashes = { file_hash: head.file_hash, content_hash, metadata_hash: head.metadata_hash } as Parameters<
    typeof objectHash
  >[0];
  const isWhole = content_hash === null ? content === null : hashText(text) === content_hash;
  if (isWhole && objectHash(hashes) === object_hash) return parts;
  throw new DocumentError(
    'hash-mismatch',
    `the hashes of the stored version of ${quoted(head['xt/id'])} do not match its content`,
  );
}

/** Returns whether a stored document is the head of an object, as opposed to a part. */
export function isHead(document: StoredDocument): boolean {
  return isObjectType(document.type);
}

/** Returns the marks of a head. */
export function marksOf(head: StoredDocument): HeadMarks {
  return Object.fromEntries(
    MARKS.filter((mark) => head[mark] !== undefined).map((mark) => [mark, head[mark]]),
  ) as HeadMarks;
}

/**
 * Returns the hash of the text parts that hold a head's content. Undefined if the head holds its
 * content itself or has none.
 */
export function contentPartHash(head: StoredDocument): Sha256 | undefined {
  return Object.hasOwn(head, 'content') ? undefined : (head.content_hash as Sha256);
}

/**
 * Returns the SSOT document of a head, with every hash checked. `content` is the text of its parts,
 * if it has any. `folded` are the fields folded from steps.
 *
 * @throws {DocumentError} `hash-mismatch` if the version is damaged
 */
export function fromStored(
  head: StoredDocument,
  content: string | undefined,
  folded: Readonly<Record<string, unknown>> = {},
): ObjectVersion {
  const document: Record<string, unknown> = { ...head, ...folded };
  for (const mark of MARKS) delete document[mark];
  if (!Object.hasOwn(document, 'content')) {
    if (content === undefined) {
      throw new StoreError(
        'missing-part',
        `the database does not hold ${chunkId(String(head.content_hash))}, the content of ${quoted(head['xt/id'])}`,
      );
    }
    document.content = content;
  }
  return restoreVersion(document);
}

/** The data of a session within a turn, from which the heads of its session and chat are built. */
export interface RunningSession extends GrowingSets {
  readonly id: SessionId;
  readonly chat: ChatLog;
}

/** The data of a head within a turn, marks excluded. */
interface RunningHead {
  readonly type: 'chat' | 'session';
  readonly id: ObjectId;
  readonly metadata_hash: Sha256;
  readonly fields: object;
}

function runningHead({ type, id, metadata_hash, fields }: RunningHead, marks: HeadMarks): StoredDocument {
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

/**
 * Returns the head that `toStored` would build from the chat's version, without building that
 * version. The turns are hashed, not copied.
 */
export function runningChatHead({ id, chat }: RunningSession, hashes: HeadHashes, marks: HeadMarks): StoredDocument {
  const turn_count = chat.closed.size + (chat.running.size === 0 ? 0 : 1);
  const fields = { session_ref: sessionObjectId(id), turn_count };
  return runningHead({ type: 'chat', id: chatObjectId(id), metadata_hash: hashes.chat(chat), fields }, marks);
}

/**
 * Returns the head that `toStored` would build from the session's version, without building that
 * version.
 */
export function runningSessionHead(session: RunningSession, hashes: HeadHashes, marks: HeadMarks): StoredDocument {
  const { id } = session;
  const fields = { session_id: id, chat_ref: chatObjectId(id), system_prompt_ref: systemPromptObjectId(id) };
  return runningHead(
    { type: 'session', id: sessionObjectId(id), metadata_hash: hashes.session(session), fields },
    marks,
  );
}

/**
 * Returns whether an object's typed fields are folded from its session's steps and absent from its
 * head (decision G2).
 */
export const isFolded = ({ type }: StoredDocument): boolean => type === 'chat' || type === 'session';

/** Returns the session of a folded object. */
export const sessionOfFolded = ({ 'xt/id': id }: StoredDocument): SessionId =>
  sessionId(String(id).slice(String(id).indexOf(':') + 1));

/**
 * Returns whether a head includes all steps, so that its hashes can be checked. Within a turn, the
 * version is sealed again from head and steps (decision G4).
 */
const isWhole = (head: StoredDocument, last: number): boolean => (marksOf(head).upto ?? 0) === last;

/**
 * Returns a session's wrapper from its head and its sets.
 *
 * @throws {DocumentError} `hash-mismatch` if the version is damaged
 */
export function foldedSession(
  head: StoredDocument,
  { sets, seq }: { readonly sets: SessionSets; readonly seq: number },
): ObjectVersion {
  const { index, active, pinned } = sets;
  const fields = { session_index: index, metadata_pool: index, active_set: active, pinned_set: pinned };
  return isWhole(head, seq) ? fromStored(head, undefined, fields) : sessionVersion(sessionOfFolded(head), sets);
}

/**
 * Returns a chat from its head and its steps.
 *
 * @throws {DocumentError} `hash-mismatch` if the version is damaged
 */
export function foldedChat(head: StoredDocument, steps: readonly Step[]): ObjectVersion {
  const sealed = chatVersion(sessionOfFolded(head), turnsOf(chatAfterAll(NO_CHAT, steps)));
  const { turns, toolcall_refs } = sealed;
  // The head's hashes cover texts that were erased on order later.
  const isErased = steps.some((step) => step.erased === true);
  return isWhole(head, steps.at(-1)?.seq ?? 0) && !isErased
    ? fromStored(head, undefined, { turns, toolcall_refs })
    : sealed;
}
