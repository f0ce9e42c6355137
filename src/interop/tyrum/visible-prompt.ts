import type { Json } from '../../objects/canonical-json.js';
import { budgetedView, type ViewItem } from '../../projection/budgeted-view.js';
import type { Entry, EntryId } from '../../projection/entry.js';
import type { Projection } from '../../projection/project-session.js';
import { NO_VIEW, type ViewState } from '../../projection/shrink-view.js';
import { reminderText } from '../../projection/summary.js';
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

const ROLES = { system: 'system', user: 'user', reminder: 'user', approval: 'user', assistant: 'assistant', result: 'tool' } as const;
/** The id of the message that stands for those that a compaction left out. */
const CHECKPOINT = 'checkpoint';

/**
 * The entries as a model is sent them: a result that the session's retention let go as its line [§4.3]; an approval that waits is a reminder, so that it is not asked for again; of one that was decided the conversation's state and the
 * checkpoint speak.
 */
export function sentEntries({ entries, counter }: Pick<Projection, 'entries' | 'counter'>): readonly Entry[] {
  return entries.flatMap((entry): readonly Entry[] => {
    if (entry.kind === 'result' && !entry.active) return [{ ...entry, text: entry.line, tokens: entry.lineTokens }];
    if (entry.kind !== 'approval') return [entry];
    if (entry.state !== 'pending') return [];
    const { approval, tool, native } = entry;
    const call = tool === undefined && native === undefined ? '' : ` of ${[tool, native].filter((one) => one !== undefined).join(' ')}`;
    const text = reminderText(`Approval ${approval}${call} waits for an answer: ${entry.text}`);
    return [{ ...entry, text, tokens: counter.count(text) }];
  });
}

function messageOf(item: ViewItem): PromptMessage {
  if (item.kind === 'summary') return { id: CHECKPOINT, role: 'user', content: item.text };
  const { entry, text } = item;
  const { id, kind } = entry;
  const role = ROLES[kind];
  if (kind === 'result') return { id, role, content: text, tool_call_id: entry.native, tool_name: entry.tool };
  if (kind !== 'assistant' || entry.calls.length === 0) return { id, role, content: text };
  const calls = entry.calls.map(({ native, tool, args }) => ({ tool_call_id: native, tool_name: tool, args }));
  return { id, role, content: text, tool_calls: calls };
}

/** The messages of a view. */
export const messagesOf = (items: readonly ViewItem[]): readonly PromptMessage[] => items.map(messageOf);

/**
 * The messages of a session as a model of Tyrum is sent them: its checkpoint in place of what compactions left out, what waits, and what came since, pruned.
 * @throws {TyrumError} `invalid-settings`
 */
export function visiblePrompt(
  projection: Pick<Projection, 'entries' | 'counter'>,
  settings: PruneSettings,
  state: ViewState = NO_VIEW,
): VisiblePrompt {
  const { counter } = projection;
  const view = budgetedView({ entries: sentEntries(projection), counter }, { tokens: Number.MAX_SAFE_INTEGER }, state);
  const shown = view.items.flatMap((item) => (item.kind === 'entry' ? [item.entry] : []));
  const { entries, results, messages } = pruneEntries(shown, settings);
  const left = new Map(entries.map((entry) => [entry.id, entry]));
  const items = view.items.flatMap((item): readonly ViewItem[] => {
    if (item.kind === 'summary') return [item];
    const entry = left.get(item.entry.id);
    return entry === undefined ? [] : [{ ...item, entry }];
  });
  return { messages: messagesOf(items), pruned: { results, messages } };
}
