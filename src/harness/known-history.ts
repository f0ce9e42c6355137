import type { ObjectMetadata } from '../assembly/metadata.js';
import type { RecordMask } from '../client/record-mask.js';
import { isSilent } from '../objects/chat-log.js';
import { hashText } from '../objects/hashes.js';
import type { ObjectId } from '../objects/ids.js';
import { abridge, isLargeText } from '../objects/large-text.js';
import type { Message } from '../objects/object-type.js';
import type { ChatMark } from '../session/session-fold.js';
import { defined } from '../values/defined.js';
import type { HistoryItem } from './history-item.js';
import type { HistoryEntry } from './reconcile.js';

/** Maximum length of texts that are compared directly. Longer texts are compared by hash. */
const SHORT = 256;

const textKey = (text: string): string => (text.length <= SHORT ? text : hashText(text));

function messageEntry({ role, name, text }: Pick<Message, 'role' | 'name' | 'text'>, id?: string): HistoryEntry {
  const key = JSON.stringify([role, name ?? null, textKey(text.toWellFormed())]);
  return { kind: 'message', key, weight: text.length, ...defined({ id }) };
}

/** Returns the hash under which the output of a call is stored. */
export function storedHash(content: string): string {
  const text = content.toWellFormed();
  return hashText(isLargeText(text) ? abridge(text).content : text);
}

const callKey = (tool: string, hash: string | null): string => JSON.stringify([tool, hash]);

/**
 * Returns whether an entry is compared with the chat. The place of an entry without content follows
 * from its neighbours.
 */
export const isCompared = (item: HistoryItem | undefined): boolean =>
  item !== undefined && (item.kind === 'call' || !isSilent(item));

/**
 * Returns an entry of a sent history in comparable form. Its text is masked as recorded texts are.
 */
export function sentEntry(item: HistoryItem, mask: RecordMask): HistoryEntry {
  if (item.kind === 'message') return messageEntry({ ...item, text: mask.text(item.text) }, item.id);
  const weight = item.content.length;
  // Recorded calls always have an id. If this call has an id, too, only ids are compared, and its
  // output need not be hashed.
  if (item.id !== undefined) return { kind: 'call', id: item.id, key: JSON.stringify([item.id]), weight };
  return { kind: 'call', key: callKey(item.tool, storedHash(mask.text(item.content))), weight };
}

/**
 * Returns the id that the harness uses for a recorded call. The recorded id may have a suffix that
 * makes it unique (decision B2).
 */
export function nativeCallId(ref: string, used: ReadonlySet<string>): string {
  if (used.has(ref)) return ref;
  const once = ref.replace(/~\d+$/, '');
  if (used.has(once)) return once;
  for (let at = once.indexOf('@'); at >= 0; at = once.indexOf('@', at + 1)) {
    const bare = once.slice(0, at);
    if (used.has(bare)) return bare;
  }
  return ref;
}

/** An entry of a session's chat with its step. A call also has the id of its object. */
export interface KnownEntry extends HistoryEntry {
  readonly seq: number;
  readonly turn: number;
  readonly ref?: ObjectId;
}

/** Cache of comparable messages. It stays valid because a `ChatMark` never changes. */
const ENTRIES = new WeakMap<ChatMark, KnownEntry>();

function knownMessage(mark: ChatMark, message: Message): KnownEntry {
  const known = ENTRIES.get(mark);
  if (known !== undefined) return known;
  const entry = { ...messageEntry(message, mark.native), seq: mark.seq, turn: mark.turn };
  ENTRIES.set(mark, entry);
  return entry;
}

/**
 * Returns a session's chat in comparable form: messages and calls, in the order of steps. Entries
 * that a fork shares with its parent are marked. Messages without content are left out, because
 * they cannot be compared.
 */
export function chatEntries(
  marks: readonly ChatMark[],
  metadataOf: (id: ObjectId) => ObjectMetadata | undefined,
  usedIds: ReadonlySet<string>,
): readonly KnownEntry[] {
  const inheritedUpto = marks.findLast(({ event }) => event?.kind === 'forked')?.seq ?? 0;
  const callEntry = (ref: ObjectId, { seq, turn }: ChatMark): KnownEntry => {
    const metadata = metadataOf(ref);
    const call = metadata?.type === 'toolcall' ? metadata : undefined;
    const key = call === undefined ? JSON.stringify([ref]) : callKey(call.tool, call.contentHash);
    return { kind: 'call', id: nativeCallId(ref, usedIds), key, weight: call?.charCount ?? 0, seq, turn, ref };
  };
  return marks.flatMap((mark) => {
    const { message, call, seq } = mark;
    const said = message === undefined || isSilent(message) ? [] : [knownMessage(mark, message)];
    const entries = call === undefined ? said : [...said, callEntry(call, mark)];
    return seq < inheritedUpto ? entries.map((entry) => ({ ...entry, inherited: true })) : entries;
  });
}

/** Returns whether a chat entry can be compared: a call, or a message with content. */
const isSpoken = ({ message, call }: ChatMark): boolean =>
  call !== undefined || (message !== undefined && !isSilent(message));

/**
 * Returns which messages without content a session already has, as indexes with their steps. Such a
 * message is known if a step has its id, or if the next comparable entry is known. After the last
 * comparable entry, as many messages are known as the chat has at its end. `isKnown` decides for
 * comparable entries.
 */
export function knownSilent(
  items: readonly HistoryItem[],
  isKnown: (place: number) => boolean,
  marks: readonly ChatMark[],
): ReadonlyMap<number, ChatMark | undefined> {
  const silent = marks.filter(({ message }) => message !== undefined && isSilent(message));
  const byId = new Map(silent.flatMap((mark) => (mark.native === undefined ? [] : [[mark.native, mark] as const])));
  const ids = new Set(items.flatMap((item) => item.id ?? []));
  const end = marks.findLast(isSpoken)?.seq ?? 0;
  const ending = silent.filter(({ seq, native }) => seq > end && !(native !== undefined && ids.has(native)));
  let next = items.length;
  const followed = [...items.keys()].reverse().filter((i) => {
    if (isCompared(items[i])) next = i;
    return next !== i && isKnown(next);
  });
  const known = new Map<number, ChatMark | undefined>(followed.map((i) => [i, undefined]));
  for (const [i, item] of items.entries()) {
    if (isCompared(item)) continue;
    const own = item.id === undefined ? undefined : byId.get(item.id);
    if (own !== undefined) known.set(i, own);
    else if (!known.has(i) && ending.length > 0) known.set(i, ending.shift());
  }
  return known;
}
