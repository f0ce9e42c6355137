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

/** Longer texts are compared by hash. */
const SHORT = 256;

const textKey = (text: string): string => (text.length <= SHORT ? text : hashText(text));

function messageEntry({ role, name, text }: Pick<Message, 'role' | 'name' | 'text'>, id?: string): HistoryEntry {
  const key = JSON.stringify([role, name ?? null, textKey(text.toWellFormed())]);
  return { kind: 'message', key, weight: text.length, ...defined({ id }) };
}

/** Returns the hash under which a call's output is stored. */
export function storedHash(content: string): string {
  const text = content.toWellFormed();
  return hashText(isLargeText(text) ? abridge(text).content : text);
}

const callKey = (tool: string, hash: string | null): string => JSON.stringify([tool, hash]);

/**
 * Returns whether an item is compared with the chat. The position of an empty item follows from its
 * neighbours.
 */
export const isCompared = (item: HistoryItem | undefined): boolean =>
  item !== undefined && (item.kind === 'call' || !isSilent(item));

/** Returns a sent history item in comparable form. Recorded texts have the marks of `mask`. */
export function sentEntry(item: HistoryItem, mask: RecordMask): HistoryEntry {
  if (item.kind === 'message') return messageEntry({ ...item, text: mask.text(item.text) }, item.id);
  const weight = item.content.length;
  // Known calls always have an id. If this call has one too, the id decides, and long outputs need
  // not be hashed again.
  if (item.id !== undefined) return { kind: 'call', id: item.id, key: JSON.stringify([item.id]), weight };
  return { kind: 'call', key: callKey(item.tool, storedHash(mask.text(item.content))), weight };
}

/**
 * Returns the harness's id of a recorded call. It is the recorded id without the suffix that made
 * it unique (decision B2), if the harness uses that id.
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

/** An entry of a session's chat: its step, and the object of a call. */
export interface KnownEntry extends HistoryEntry {
  readonly seq: number;
  readonly turn: number;
  readonly ref?: ObjectId;
}

/** Marks never change, so the comparable form of their messages is cached. */
const ENTRIES = new WeakMap<ChatMark, KnownEntry>();

function knownMessage(mark: ChatMark, message: Message): KnownEntry {
  const known = ENTRIES.get(mark);
  if (known !== undefined) return known;
  const entry = { ...messageEntry(message, mark.native), seq: mark.seq, turn: mark.turn };
  ENTRIES.set(mark, entry);
  return entry;
}

/**
 * Returns the comparable chat of a session: messages and calls in step order. Entries that a fork
 * shares with its parent are marked. Silent messages are left out, because they have no content to
 * compare, and a call recorded without its message has none.
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

/** Returns whether a chat entry is compared: a call, or a message with content. */
const isSpoken = ({ message, call }: ChatMark): boolean =>
  call !== undefined || (message !== undefined && !isSilent(message));

/**
 * Returns the known silent messages of a history, as indexes with their steps. A silent message is
 * known if a step has its id, or if it precedes a known entry, because the chat has its calls.
 * After the last known entry, as many are known as the chat ends with. `isKnown` decides about all
 * other entries.
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
