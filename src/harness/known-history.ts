import type { ObjectMetadata } from '../assembly/metadata.js';
import { hashText } from '../objects/hashes.js';
import type { ObjectId } from '../objects/ids.js';
import { abridge, isLargeText } from '../objects/large-text.js';
import type { Message } from '../objects/object-type.js';
import type { ChatMark } from '../session/session-fold.js';
import { defined } from '../values/defined.js';
import type { HistoryItem } from './history-item.js';
import type { HistoryEntry } from './reconcile.js';

/** Longer texts are compared by their hash. */
const SHORT = 256;

const textKey = (text: string): string => (text.length <= SHORT ? text : hashText(text));

function messageEntry({ role, name, text }: Pick<Message, 'role' | 'name' | 'text'>, id?: string): HistoryEntry {
  const key = JSON.stringify([role, name ?? null, textKey(text.toWellFormed())]);
  return { kind: 'message', key, weight: text.length, ...defined({ id }) };
}

/** The hash under which a call's output is stored. */
export function storedHash(content: string): string {
  const text = content.toWellFormed();
  return hashText(isLargeText(text) ? abridge(text).content : text);
}

const callKey = (tool: string, hash: string | null): string => JSON.stringify([tool, hash]);

/**
 * A message that says nothing only carries calls; it is no entry of its own, because recording the calls brings it about [decision B6].
 */
export const isBareCarrier = ({ role, text }: Pick<Message, 'role' | 'text'>): boolean =>
  text === '' && (role === 'assistant' || role === 'model');

/** An item of a history that was sent, as it is compared. */
export function sentEntry(item: HistoryItem): HistoryEntry {
  if (item.kind === 'message') return messageEntry(item, item.id);
  const weight = item.content.length;
  // Known calls all have an id: where this one has one too, nothing else is compared, and long outputs need not be hashed again and again.
  if (item.id !== undefined) return { kind: 'call', id: item.id, key: JSON.stringify([item.id]), weight };
  return { kind: 'call', key: callKey(item.tool, storedHash(item.content)), weight };
}

/** The harness's own id of a recorded call: without the marks that made it unique (decision B2), if that is an id that it uses. */
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

/** An entry of a session's own chat: the step that brought it, and the object of a call. */
export interface KnownEntry extends HistoryEntry {
  readonly seq: number;
  readonly turn: number;
  readonly ref?: ObjectId;
}

/** Marks never change: what their messages are compared by is made once. */
const ENTRIES = new WeakMap<ChatMark, KnownEntry>();

function knownMessage(mark: ChatMark, message: Message): KnownEntry {
  const known = ENTRIES.get(mark);
  if (known !== undefined) return known;
  const entry = { ...messageEntry(message, mark.native), seq: mark.seq, turn: mark.turn };
  ENTRIES.set(mark, entry);
  return entry;
}

/** The chat of a session as it is compared: messages and calls in the order of their steps. What a fork shares with its parent is marked as such. */
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
    const said = message === undefined || isBareCarrier(message) ? [] : [knownMessage(mark, message)];
    const entries = call === undefined ? said : [...said, callEntry(call, mark)];
    return seq < inheritedUpto ? entries.map((entry) => ({ ...entry, inherited: true })) : entries;
  });
}
