import type { ContextRecord } from '../../objects/context-record.js';
import { defined } from '../../values/defined.js';
import { type BudgetedView, budgetedView } from '../projection/budgeted-view.js';
import type { Entry } from '../projection/entry.js';
import { criticalIdentifiers } from '../projection/identifiers.js';
import type { Projection } from '../projection/project-session.js';
import { summarisedView } from '../projection/summarised-view.js';
import type { ViewBudget } from '../projection/view-budget.js';
import { viewRecords } from '../projection/view-records.js';
import { type CheckpointWriter, checkpointSummariser } from './checkpoint-writer.js';
import { type Conversation, conversationState, SURFACE } from './conversation.js';
import type { ConversationState } from './conversation-state.js';
import { digestCheckpoint, requiredOf, unsaidDemands } from './digest-checkpoint.js';
import { TyrumError } from './tyrum-error.js';
import { sentEntries } from './visible-prompt.js';

/**
 * Why a conversation is compacted: it exceeds its limit, a user asked for it, or a provider
 * rejected a request as too long.
 */
export type CompactionReason = 'token_pressure' | 'manual' | 'overflow';

/** Settings of a compaction. */
export interface CompactionWish {
  /** The hard token limit of a request, including the reserved tokens. */
  readonly tokens: number;
  /** Tokens reserved for tool schemas and the answer; 0 if omitted. */
  readonly reserved?: number;
  /** The share of the limit above which `token_pressure` compacts; 1 if omitted. */
  readonly threshold?: number;
  /** The share of the limit to which a compaction shrinks the prompt; 0.5 if omitted. */
  readonly target?: number;
  /** The number of newest messages whose turns stay while the limit allows it; 2 if omitted. */
  readonly keepLastMessages?: number;
  /** The number of newest results kept in full while the limit allows it; 3 if omitted. */
  readonly keepResults?: number;
  /** Maximum tokens of the checkpoint beside its obligations; a tenth of the limit if omitted. */
  readonly checkpointTokens?: number;
  /**
   * The token count of the last request as the provider reported it. If it exceeds the threshold,
   * the conversation is compacted, even if our own count does not.
   */
  readonly reported?: number;
  readonly reason: CompactionReason;
}

/** A conversation after its compaction, or an unchanged one if everything fits. */
export interface CompactedConversation {
  readonly view: BudgetedView;
  readonly state: ConversationState;
  /** The critical identifiers of the removed entries. */
  readonly identifiers: readonly string[];
  /**
   * Requirements of users that are missing from the checkpoint, because it has no room for them.
   */
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
  const {
    tokens,
    reserved = 0,
    threshold = 1,
    target = TARGET,
    keepLastMessages = KEEP_MESSAGES,
    reason,
    reported = 0,
  } = wish;
  if (reserved >= tokens) {
    throw new TyrumError(
      'invalid-settings',
      `${reserved} tokens of ${tokens} are reserved, which leaves none: raise the limit, or reserve less`,
    );
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
    ...defined({
      keepResults: wish.keepResults,
      summary: wish.checkpointTokens,
      required: requiredOf(facts, projection.counter),
    }),
  };
}

/**
 * Compacts a conversation to a token limit, as Tyrum does. Results become lines first, then a
 * checkpoint replaces the oldest turns. The first pending call or approval and everything after it
 * stay. Stored data is unchanged.
 *
 * A writer has two attempts within the limit, and must include the critical identifiers.
 * Obligations that it omits are added. If both attempts fail, the checkpoint made without a model
 * is used. With `rewrite`, the writer also rewrites an existing checkpoint if everything fits.
 * Without a writer, equal input gives an equal result.
 * @throws {ProjectionError} `invalid-budget`
 * @throws {ProjectionError} `budget-too-small`, with the minimum limit, if the entries that must
 *   stay exceed the limit. These are pending entries and all after them, system messages, and the
 *   user's newest message.
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
  }: {
    readonly writer?: CheckpointWriter | undefined;
    readonly rewrite?: boolean;
    readonly signal?: AbortSignal;
    readonly at: number;
  },
): Promise<CompactedConversation> {
  const { projection, facts, state } = conversation;
  const entries = sentEntries(projection);
  const budget = budgetOf(conversation, entries, wish);
  const shown = { entries, counter: projection.counter };
  const view =
    writer === undefined
      ? budgetedView(shown, budget, state)
      : await summarisedView(shown, budget, {
          state,
          summariser: checkpointSummariser(writer, facts),
          ...defined({ signal, rewrite }),
        });
  const isGone = new Set<string>(view.state.gone);
  const gone = entries.filter(({ id }) => isGone.has(id));
  const after = conversationState(conversation, {
    state: view.state,
    at: view.shrunk === undefined ? conversation.compactedAt : at,
  });
  return {
    view,
    state: after,
    identifiers: criticalIdentifiers(gone),
    unsaid: after.checkpoint === null ? [] : unsaidDemands(after.checkpoint, facts.of(gone)),
  };
}

/** Returns the records of a compaction, or no records if everything fitted. */
export function compactionRecords(
  projection: Projection,
  { view, unsaid }: CompactedConversation,
  { wish, at }: { readonly wish: CompactionWish; readonly at: number },
): readonly ContextRecord[] {
  const { shrunk, state } = view;
  if (shrunk === undefined) return [];
  const { reason, reserved } = wish;
  const losses = (state.summary?.summary.refused ?? []).map((why) => `a checkpoint was not accepted: ${why}`);
  if (unsaid.length > 0)
    losses.push(`the checkpoint has no room for ${unsaid.length} sentences of users that say what must hold`);
  return viewRecords(projection, view, { target: 'model', surface: SURFACE, trigger: reason, at }).map((record) => {
    if (record.kind === 'budget') return { ...record, body: { ...record.body, ...defined({ reserved }) } };
    if (record.kind !== 'compaction' || losses.length === 0) return record;
    return { ...record, body: { ...record.body, loss: [...(record.body.loss ?? []), ...losses] } };
  });
}
