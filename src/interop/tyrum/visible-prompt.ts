import type { Json } from '../../objects/canonical-json.js';
import type { Entry, EntryId } from '../../projection/entry.js';
import { type PruneSettings, pruneEntries } from './prune-entries.js';

/** A message of what a model is sent on Tyrum's surface. */
export interface PromptMessage {
  readonly id: string;
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly tool_calls?: readonly { readonly tool_call_id: string; readonly tool_name: string; readonly args: Json }[];
  readonly tool_call_id?: string;
  readonly tool_name?: string;
}

/** What a model is sent, and what was left out of it. */
export interface VisiblePrompt {
  readonly messages: readonly PromptMessage[];
  /** Results that were pruned with their calls, and other messages that were. */
  readonly pruned: { readonly results: readonly EntryId[]; readonly messages: readonly EntryId[] };
}

const ROLES = { system: 'system', user: 'user', reminder: 'user', assistant: 'assistant', result: 'tool' } as const;

/** An entry as a message; an approval is none, since it stands in the conversation's state. */
function messageOf(entry: Entry): readonly PromptMessage[] {
  if (entry.kind === 'approval') return [];
  const { id, kind } = entry;
  const role = ROLES[kind];
  if (kind === 'result') {
    const content = entry.active ? (entry.text ?? '') : entry.line;
    return [{ id, role, content, tool_call_id: entry.native, tool_name: entry.tool }];
  }
  if (kind !== 'assistant' || entry.calls.length === 0) return [{ id, role, content: entry.text }];
  const calls = entry.calls.map(({ native, tool, args }) => ({ tool_call_id: native, tool_name: tool, args }));
  return [{ id, role, content: entry.text, tool_calls: calls }];
}

/**
 * The messages of a session as a model of Tyrum is sent them, pruned. A result that the session's retention let go is its line, as everywhere [§4.3].
 * @throws {TyrumError} `invalid-settings`
 */
export function visiblePrompt(entries: readonly Entry[], settings: PruneSettings): VisiblePrompt {
  const { entries: left, results, messages } = pruneEntries(entries, settings);
  return { messages: left.flatMap(messageOf), pruned: { results, messages } };
}
