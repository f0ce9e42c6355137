import type { ObjectId } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import type { AssistantEntry, Entry, EntryCall, EntryId, ResultEntry } from '../projection/entry.js';
import { nameFor } from './session-paths.js';

/** A line of `messages.jsonl` without its line end. */
export interface MessageLine {
  readonly text: string;
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  /** The entry that the line shows. The prompt and approvals have no line. */
  readonly entry: EntryId;
  /** The step of the line's message or call. */
  readonly seq: number;
  /** True if we generated the line; false if it was imported. */
  readonly isOwn: boolean;
  /** True if a human wrote the text. Reminders have the same role. */
  readonly isAsk: boolean;
}

/**
 * Returns the fields for the name of a tool or call. If the name is invalid, a derived name
 * replaces it and the original is kept beside it.
 */
function named(key: 'id' | 'name', text: string): Readonly<Record<string, string>> {
  const name = nameFor(text);
  return name === text ? { [key]: name } : { [key]: name, [`own_${key}`]: text };
}

/** Arguments are stored as JSON text, because CortexFS forbids some keys at any depth of a line. */
const callFields = ({ native, tool, argsText }: EntryCall) => ({
  ...named('id', native),
  ...named('name', tool),
  arguments: argsText,
});

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

/** A call gets its own line after the message, so that a further call only appends a line. */
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

/** Returns true for the placeholder entry of calls whose message was not reported. */
const isSilentGroup = ({ id }: AssistantEntry): boolean => id.startsWith('c');

function groupLines(message: AssistantEntry, results: ReadonlyMap<ObjectId, ResultEntry>): readonly MessageLine[] {
  const pairs = message.calls.flatMap((call) => {
    const result = call.state === 'answered' ? results.get(call.id) : undefined;
    return result === undefined ? [] : [callLine(message, call, result.seq), resultLine(result)];
  });
  return isSilentGroup(message) ? pairs : [saidLine(message), ...pairs];
}

/**
 * Returns the lines of `messages.jsonl`: each message, then each of its calls directly followed by
 * its result. A pending call has no result line. Lines do not depend on when or where they were
 * recorded. The lines of an earlier state are therefore a prefix, unless a result arrives after a
 * later message.
 */
export function messageLines(entries: readonly Entry[]): readonly MessageLine[] {
  const results = new Map(entries.flatMap((entry) => (entry.kind === 'result' ? [[entry.call, entry] as const] : [])));
  return entries.flatMap((entry): readonly MessageLine[] => {
    if (entry.kind === 'assistant') return groupLines(entry, results);
    if (entry.kind === 'result' || entry.kind === 'approval' || (entry.kind === 'system' && entry.isPrompt)) return [];
    const { id, text, role, name, native, seq } = entry;
    const shown = entry.kind === 'system' ? 'system' : 'user';
    const line = {
      role: shown,
      content: text,
      ...defined({ name, own_id: native, own_role: role === shown ? undefined : role }),
    };
    return [{ text: JSON.stringify(line), role: shown, entry: id, seq, isOwn: true, isAsk: entry.kind === 'user' }];
  });
}
