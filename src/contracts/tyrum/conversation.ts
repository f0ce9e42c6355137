import { defined } from '../../values/defined.js';
import type { ApprovalEntry, Entry, EntryCall } from '../projection/entry.js';
import type { Projection } from '../projection/project-session.js';
import type { SessionMoment } from '../projection/session-moment.js';
import type { ViewState } from '../projection/shrink-view.js';
import { shownLine } from '../projection/summary.js';
import { compactionsOf, viewStateOf } from '../projection/view-records.js';
import { type Checkpoint, checkpointSchema } from './checkpoint.js';
import type { ConversationState } from './conversation-state.js';
import { digestCheckpoint, requiredOf } from './digest-checkpoint.js';
import { FACT_KINDS, type SessionFacts, sessionFacts } from './session-facts.js';

/** The name of Tyrum's surface in its records. */
export const SURFACE = 'tyrum';

/** A session as Tyrum's conversation at a basis. */
export interface Conversation {
  readonly projection: Projection;
  readonly facts: SessionFacts;
  /**
   * The decisions of its compactions, and the time of the last compaction in milliseconds since
   * 1970.
   */
  readonly state: ViewState;
  readonly compactedAt: number | undefined;
}

/** Returns a session as a conversation, with the facts for its checkpoint. */
export async function conversationAt(moment: SessionMoment): Promise<Conversation> {
  const { projection } = moment;
  const [facts, compactions] = await Promise.all([moment.records(FACT_KINDS), moment.records(['compaction'])]);
  const ours = compactionsOf(compactions, SURFACE);
  return {
    projection,
    facts: sessionFacts(projection, facts),
    state: viewStateOf(ours),
    compactedAt: ours.reduce((latest, { at }) => Math.max(latest, at), 0) || undefined,
  };
}

const callsOf = (entry: Entry): readonly EntryCall[] => (entry.kind === 'assistant' ? entry.calls : []);

/**
 * Token limit of a checkpoint that a prompt has no room for, so that only the conversation's state
 * contains it. Its obligations do not count.
 */
const UNSHOWN_TOKENS = 1_000;

function checkpointOf(
  gone: readonly Entry[],
  { projection: { counter }, facts }: Conversation,
  { summary }: ViewState,
): Checkpoint | null {
  if (gone.length === 0) return null;
  const kept = checkpointSchema.safeParse(summary?.summary.form);
  if (kept.success) return kept.data;
  const limit = UNSHOWN_TOKENS + (requiredOf(facts, counter)?.tokens ?? 0);
  return checkpointSchema.parse(digestCheckpoint({ entries: gone, counter, limit }, facts).form);
}

/**
 * Returns the approvals that are obligations: pending ones, and decided ones whose call is still
 * pending.
 */
function openApprovals(entries: readonly Entry[], pending: ReadonlySet<string>): readonly ApprovalEntry[] {
  return entries.flatMap((entry) =>
    entry.kind === 'approval' && (entry.state === 'pending' || pending.has(entry.native ?? '')) ? [entry] : [],
  );
}

const DECIDED: Partial<Readonly<Record<ApprovalEntry['state'], boolean>>> = { approved: true, denied: false };

/**
 * Returns the state of a conversation. After a compaction, pass the compaction's view state and
 * time. Equal input gives an equal state.
 */
export function conversationState(
  conversation: Conversation,
  { state, at }: { readonly state: ViewState; readonly at: number | undefined } = {
    state: conversation.state,
    at: conversation.compactedAt,
  },
): ConversationState {
  const { entries } = conversation.projection;
  const isGone = new Set<string>(state.gone);
  const gone = entries.filter(({ id }) => isGone.has(id));
  const through = entries.findLastIndex(({ id }) => isGone.has(id));
  const calls = entries.flatMap(callsOf).filter((call) => call.state === 'pending');
  const approvals = openApprovals(entries, new Set(calls.map(({ native }) => native)));
  const updated = Math.max(at ?? 0, ...entries.slice(-1).map((entry) => entry.at));
  return {
    version: 1,
    ...defined({ compacted_through_message_id: entries[through]?.id }),
    recent_message_ids: entries
      .slice(through + 1)
      .flatMap(({ id, kind }) => (kind === 'approval' || kind === 'system' ? [] : [id])),
    checkpoint: checkpointOf(gone, conversation, state),
    pending_approvals: approvals.map(({ approval, state: decided, native, tool }) => ({
      approval_id: approval,
      ...defined({ approved: DECIDED[decided] }),
      state: decided,
      tool_call_id: native ?? approval,
      tool_name: tool ?? 'unknown',
    })),
    pending_tool_state: calls.map(({ native, tool, argsText }) => ({
      tool_call_id: native,
      tool_name: tool,
      summary: shownLine(argsText),
    })),
    updated_at: new Date(updated).toISOString(),
  };
}
