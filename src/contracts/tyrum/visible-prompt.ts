import type { Json } from '../../objects/canonical-json.js';
import { budgetedView, type ViewItem } from '../projection/budgeted-view.js';
import type { Entry, EntryId } from '../projection/entry.js';
import type { Projection } from '../projection/project-session.js';
import { NO_VIEW, type ViewState } from '../projection/shrink-view.js';
import { reminderText } from '../projection/summary.js';
import { type PruneSettings, pruneEntries } from './prune-entries.js';

/** A message that a model receives on Tyrum's surface. */
export interface PromptMessage {
  readonly id: string;
  readonly role: 'system' | 'user' | 'assistant' | 'tool';
  readonly content: string;
  readonly tool_calls?: readonly { readonly tool_call_id: string; readonly tool_name: string; readonly args: Json }[];
  readonly tool_call_id?: string;
  readonly tool_name?: string;
}

/** The messages that a model receives, and those that were left out. */
export interface VisiblePrompt {
  readonly messages: readonly PromptMessage[];
  /** The pruned results, which were removed with their calls, and the other pruned messages. */
  readonly pruned: { readonly results: readonly EntryId[]; readonly messages: readonly EntryId[] };
}

const ROLES = {
  system: 'system',
  user: 'user',
  reminder: 'user',
  approval: 'user',
  assistant: 'assistant',
  result: 'tool',
} as const;
/** The id of the message that contains the checkpoint. */
const CHECKPOINT = 'checkpoint';

/**
 * Returns the entries as a model receives them. A result that the session's sets do not hold in
 * full becomes its reference line [§4.3]. A pending approval becomes a reminder, so that the model
 * does not ask again. Decided approvals appear in the conversation's state and the checkpoint.
 */
export function sentEntries({ entries, counter }: Pick<Projection, 'entries' | 'counter'>): readonly Entry[] {
  return entries.flatMap((entry): readonly Entry[] => {
    if (entry.kind === 'result' && !entry.active) return [{ ...entry, text: entry.line, tokens: entry.lineTokens }];
    if (entry.kind !== 'approval') return [entry];
    if (entry.state !== 'pending') return [];
    const { approval, tool, native } = entry;
    const call =
      tool === undefined && native === undefined
        ? ''
        : ` of ${[tool, native].filter((one) => one !== undefined).join(' ')}`;
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

export const messagesOf = (items: readonly ViewItem[]): readonly PromptMessage[] => items.map(messageOf);

/**
 * Returns a session's messages as Tyrum sends them to a model: the checkpoint, and the pruned
 * entries that it does not replace.
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
