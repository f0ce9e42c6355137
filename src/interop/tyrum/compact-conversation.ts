import type { ContextRecord } from '../../objects/context-record.js';
import { type BudgetedView, budgetedView } from '../../projection/budgeted-view.js';
import type { Entry } from '../../projection/entry.js';
import { criticalIdentifiers } from '../../projection/identifiers.js';
import type { Projection } from '../../projection/project-session.js';
import { summarisedView } from '../../projection/summarised-view.js';
import type { ViewBudget } from '../../projection/view-budget.js';
import { viewRecords } from '../../projection/view-records.js';
import { defined } from '../../values/defined.js';
import { type CheckpointWriter, checkpointSummariser } from './checkpoint-writer.js';
import { type Conversation, conversationState, SURFACE } from './conversation.js';
import type { ConversationState } from './conversation-state.js';
import { digestCheckpoint, requiredOf, unsaidDemands } from './digest-checkpoint.js';
import { TyrumError } from './tyrum-error.js';
import { sentEntries } from './visible-prompt.js';

/** Why a conversation is compacted: it grew over its limit, somebody asked for it, or a provider refused a request as too long. */
export type CompactionReason = 'token_pressure' | 'manual' | 'overflow';

/** How a conversation is compacted. */
export interface CompactionWish {
  /** The most tokens of a request, what is reserved of them included: never passed. */
  readonly tokens: number;
  /** What of them the tools' schemas and the answer take; 0 if left out. */
  readonly reserved?: number;
  /** The share above which `token_pressure` compacts; 1 if left out. */
  readonly threshold?: number;
  /** The share that a compaction brings the prompt down to; 0.5 if left out. */
  readonly target?: number;
  /** The newest messages whose turns stay for as long as the limit allows; 2 if left out. */
  readonly keepLastMessages?: number;
  /** The newest results that stay in full for as long as the limit allows; 3 if left out. */
  readonly keepResults?: number;
  /** The most tokens of the checkpoint beside its obligations; a tenth of the limit if left out. */
  readonly checkpointTokens?: number;
  /** What a provider said that the last request took: compacts where that is over the threshold, whatever is counted here. */
  readonly reported?: number;
  readonly reason: CompactionReason;
}

/** A conversation after its compaction, or as it was where nothing had to go. */
export interface CompactedConversation {
  readonly view: BudgetedView;
  readonly state: ConversationState;
  /** What a checkpoint must name, and the messages that it is of. */
  readonly identifiers: readonly string[];
  /** Sentences of users that say what must hold, and that the checkpoint has no room for. */
  readonly unsaid: readonly string[];
}

const TARGET = 0.5;
const KEEP_MESSAGES = 2;

function keptTurns(entries: readonly Entry[], keep: number): number {
  const messages = entries.filter(({ kind }) => kind !== 'approval');
  const last = entries.at(-1)?.turn ?? 0;
  return last - (messages.slice(-keep)[0]?.turn ?? last);
}

function budgetOf({ facts, projection }: Conversation, entries: readonly Entry[], wish: CompactionWish): ViewBudget {
  const { tokens, reserved = 0, threshold = 1, target = TARGET, keepLastMessages = KEEP_MESSAGES, reason, reported = 0 } = wish;
  if (reserved >= tokens) {
    throw new TyrumError('invalid-settings', `${reserved} tokens of ${tokens} are reserved, which leaves none: give more, or reserve less`);
  }
  const isDue = reason !== 'token_pressure' || reported > tokens * threshold;
  return {
    tokens: tokens - reserved,
    trigger: isDue ? Math.min(threshold, target) : threshold,
    target,
    keepTurns: keptTurns(entries, Math.max(1, keepLastMessages)),
    keepBehindPending: true,
    renew: isDue,
    digest: (request) => digestCheckpoint(request, facts),
    ...defined({ keepResults: wish.keepResults, summary: wish.checkpointTokens, required: requiredOf(facts, projection.counter) }),
  };
}

/**
 * A conversation within a limit of tokens, as Tyrum compacts: results become lines, then the oldest turns give way to a checkpoint, never at or behind the first call or approval that waits. What
 * is stored stays. A writer has two tries, is held to the limit and to the critical identifiers, and gets obligations put back that it left out; then the checkpoint is taken that is made without a model.
 * With `rewrite` it is asked also where nothing goes, for a checkpoint that stands already. Without a writer the same conversation and wish give the same.
 * @throws {ProjectionError} `invalid-budget`; `budget-too-small`, with the least limit, where what waits and what stands behind it, the system's messages and the user's newest message pass it
 * @throws {TyrumError} `invalid-settings`
 */
export async function compactConversation(
  conversation: Conversation,
  wish: CompactionWish,
  {
    writer,
    rewrite,
    signal,
    at,
  }: { readonly writer?: CheckpointWriter | undefined; readonly rewrite?: boolean; readonly signal?: AbortSignal; readonly at: number },
): Promise<CompactedConversation> {
  const { projection, facts, state } = conversation;
  const entries = sentEntries(projection);
  const budget = budgetOf(conversation, entries, wish);
  const shown = { entries, counter: projection.counter };
  const view =
    writer === undefined
      ? budgetedView(shown, budget, state)
      : await summarisedView(shown, budget, { state, summariser: checkpointSummariser(writer, facts), ...defined({ signal, rewrite }) });
  const isGone = new Set<string>(view.state.gone);
  const gone = entries.filter(({ id }) => isGone.has(id));
  const after = conversationState(conversation, { state: view.state, at: view.shrunk === undefined ? conversation.compactedAt : at });
  return {
    view,
    state: after,
    identifiers: criticalIdentifiers(gone),
    unsaid: after.checkpoint === null ? [] : unsaidDemands(after.checkpoint, facts.of(gone)),
  };
}

/** The records of a compaction; none where nothing had to go. */
export function compactionRecords(
  projection: Projection,
  { view, unsaid }: CompactedConversation,
  { wish, at }: { readonly wish: CompactionWish; readonly at: number },
): readonly ContextRecord[] {
  const { shrunk, state } = view;
  if (shrunk === undefined) return [];
  const { reason, reserved } = wish;
  const losses = (state.summary?.summary.refused ?? []).map((why) => `a checkpoint was not taken: ${why}`);
  if (unsaid.length > 0) losses.push(`the checkpoint has no room for ${unsaid.length} sentences of users that say what must hold`);
  return viewRecords(projection, view, { target: 'model', surface: SURFACE, trigger: reason, at }).map((record) => {
    if (record.kind === 'budget') return { ...record, body: { ...record.body, ...defined({ reserved }) } };
    if (record.kind !== 'compaction' || losses.length === 0) return record;
    return { ...record, body: { ...record.body, loss: [...(record.body.loss ?? []), ...losses] } };
  });
}
