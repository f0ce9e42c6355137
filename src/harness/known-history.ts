import type { ObjectMetadata } from '../assembly/metadata.js';
import { hashText } from '../objects/hashes.js';
import type { ObjectId } from '../objects/ids.js';
import { abridge, isLargeText } from '../objects/large-text.js';
import type { Message, Turn } from '../objects/object-type.js';
import type { HistoryItem } from './history-item.js';
import type { HistoryEntry } from './reconcile.js';

/** Longer texts are compared by their hash. */
const SHORT = 256;

const textKey = (text: string): string => (text.length <= SHORT ? text : hashText(text));

function messageEntry({ role, name, text }: Pick<Message, 'role' | 'name' | 'text'>, id?: string): HistoryEntry {
  const key = JSON.stringify([role, name ?? null, textKey(text.toWellFormed())]);
  return { kind: 'message', key, weight: text.length, ...(id === undefined ? {} : { id }) };
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

/** Messages of closed turns stay the same objects: what they are compared by is made once. */
const ENTRIES = new WeakMap<Message, HistoryEntry>();

function knownMessageEntry(message: Message): HistoryEntry {
  const known = ENTRIES.get(message);
  if (known !== undefined) return known;
  const entry = messageEntry(message);
  ENTRIES.set(message, entry);
  return entry;
}

/** The chat of a session as it is compared: messages, and the calls that they refer to, in their order. */
export function chatEntries(
  turns: readonly Turn[],
  metadataOf: (id: ObjectId) => ObjectMetadata | undefined,
  usedIds: ReadonlySet<string>,
): readonly HistoryEntry[] {
  const callEntry = (ref: ObjectId): HistoryEntry => {
    const metadata = metadataOf(ref);
    const call = metadata?.type === 'toolcall' ? metadata : undefined;
    const key = call === undefined ? JSON.stringify([ref]) : callKey(call.tool, call.contentHash);
    return { kind: 'call', id: nativeCallId(ref, usedIds), key, weight: call?.charCount ?? 0 };
  };
  return turns.flatMap(({ messages }) =>
    messages.flatMap((message) => [
      ...(isBareCarrier(message) ? [] : [knownMessageEntry(message)]),
      ...(message.toolcall_refs ?? []).map(callEntry),
    ]),
  );
}
