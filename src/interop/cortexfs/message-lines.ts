import type { ObjectId } from '../../objects/ids.js';
import type { AssistantEntry, Entry, EntryCall, EntryId, ResultEntry } from '../../projection/entry.js';
import { defined } from '../../values/defined.js';
import { nameFor } from './session-paths.js';

/** A line of `messages.jsonl`, without its end. */
export interface MessageLine {
  readonly text: string;
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  /** The entry that it shows; the prompt and approvals have no line. */
  readonly entry: EntryId;
  /** The step of its message, or of its call. */
  readonly seq: number;
  /** Whether it is as we write it; false for one that an import kept. */
  readonly isOwn: boolean;
  /** Whether a human wrote it: a reminder has the same role. */
  readonly isAsk: boolean;
}

/** A tool or call by its name; where that is no name of the document, by one made of it, with the own one beside it. */
function named(key: 'id' | 'name', text: string): Readonly<Record<string, string>> {
  const name = nameFor(text);
  return name === text ? { [key]: name } : { [key]: name, [`own_${key}`]: text };
}

/** Arguments stand as a text of JSON: the document refuses some keys anywhere in a line, and an argument may have any. */
const callFields = ({ native, tool, argsText }: EntryCall) => ({ ...named('id', native), ...named('name', tool), arguments: argsText });

function saidLine({ id, text, role, name, native, seq }: AssistantEntry): MessageLine {
  const own = defined({ name, own_id: native, own_role: role === 'assistant' ? undefined : role });
  return {
    text: JSON.stringify({ role: 'assistant', content: text, ...own }),
    role: 'assistant',
    entry: id,
    seq,
    isOwn: true,
    isAsk: false,
  };
}

/** A call stands in a line of its own behind what was said, so that the next one appends and changes nothing. */
function callLine({ id }: AssistantEntry, call: EntryCall, seq: number): MessageLine {
  const line = { role: 'assistant', content: '', tool_calls: [callFields(call)] };
  return { text: JSON.stringify(line), role: 'assistant', entry: id, seq, isOwn: true, isAsk: false };
}

function resultLine({ id, native, text, status, whole, seq }: ResultEntry): MessageLine {
  const part = { type: 'tool_result', tool_call_id: nameFor(native), content: text ?? '' };
  const line = {
    role: 'tool',
    content: [part],
    ...(status === 'ok' ? {} : { status }),
    ...(text === null ? { has_text: false } : {}),
    ...defined({ whole_sha256: whole }),
  };
  return { text: JSON.stringify(line), role: 'tool', entry: id, seq, isOwn: true, isAsk: false };
}

/** Whether calls stand without a message that was reported. */
const isSilentGroup = ({ id }: AssistantEntry): boolean => id.startsWith('c');

function groupLines(message: AssistantEntry, results: ReadonlyMap<ObjectId, ResultEntry>): readonly MessageLine[] {
  const pairs = message.calls.flatMap((call) => {
    const result = call.state === 'answered' ? results.get(call.id) : undefined;
    return result === undefined ? [] : [callLine(message, call, result.seq), resultLine(result)];
  });
  return isSilentGroup(message) ? pairs : [saidLine(message), ...pairs];
}

/**
 * The lines of `messages.jsonl`: each message, each call in a line of its own, its result directly behind it; a call whose result has not come has none. Nothing in a line depends on when or
 * where it was recorded, so that what a later moment shows begins with what an earlier one does, as long as no result comes behind a later message than its own.
 */
export function messageLines(entries: readonly Entry[]): readonly MessageLine[] {
  const results = new Map(entries.flatMap((entry) => (entry.kind === 'result' ? [[entry.call, entry] as const] : [])));
  return entries.flatMap((entry): readonly MessageLine[] => {
    if (entry.kind === 'assistant') return groupLines(entry, results);
    if (entry.kind === 'result' || entry.kind === 'approval' || (entry.kind === 'system' && entry.isPrompt)) return [];
    const { id, text, role, name, native, seq } = entry;
    const shown = entry.kind === 'system' ? 'system' : 'user';
    const line = { role: shown, content: text, ...defined({ name, own_id: native, own_role: role === shown ? undefined : role }) };
    return [{ text: JSON.stringify(line), role: shown, entry: id, seq, isOwn: true, isAsk: entry.kind === 'user' }];
  });
}
