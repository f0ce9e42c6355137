import { type BudgetedView, budgetedView, summaryAlone, type ViewItem } from './budgeted-view.js';
import type { Projection } from './project-session.js';
import { NO_VIEW, type ViewState } from './shrink-view.js';
import { auditedSummary, reminderOverhead, reminderWithin, type Summariser } from './summary.js';
import type { ViewBudget } from './view-budget.js';

/** How a view is made whose summary may be written by somebody. */
export interface SummarisedViewOptions {
  /** Of the view before it. */
  readonly state?: ViewState;
  /** The deterministic digest stands where there is none, and where it fails or loses an identifier. */
  readonly summariser?: Summariser | undefined;
  /** Asks the summariser also where nothing went since the summary that stands; what is refused then leaves that one. Not if left out. */
  readonly rewrite?: boolean;
  /** Ends the wait for the summariser: then the digest is taken. */
  readonly signal?: AbortSignal;
}

function isSummary(item: ViewItem): boolean {
  return item.kind === 'summary';
}

/**
 * As `budgetedView`, and where entries went that had not gone before, their summary is asked of a summariser and audited. It is never longer than the digest
 * may be, so the limit holds as well; what it was written of are the session's own entries, never an earlier summary.
 * @throws {ProjectionError} as `budgetedView`; never because of the summariser
 */
export async function summarisedView(
  projection: Pick<Projection, 'entries' | 'counter'>,
  budget: ViewBudget,
  { state = NO_VIEW, summariser, signal, rewrite = false }: SummarisedViewOptions,
): Promise<BudgetedView> {
  const view = budgetedView(projection, budget, state);
  const made = view.state.summary;
  if (summariser === undefined || made === undefined) return view;
  const isRewrite = made.of === state.summary?.of;
  if (isRewrite && !rewrite) return view;
  const { counter } = projection;
  const own = view.items.filter(isSummary).reduce((sum, { tokens }) => sum + tokens, 0);
  const [others, around] = [view.tokens - own, counter.perMessage + reminderOverhead(counter)];
  const room = view.limits.most - others;
  const gone = new Set(view.state.gone);
  const entries = projection.entries.filter(({ id }) => gone.has(id));
  const limit = Math.min(room, view.limits.summary) - around;
  const spare = Math.max(limit, Math.min(room, view.limits.roomy - others) - around);
  const summary = await auditedSummary(
    { entries, counter, limit, spare, required: view.limits.leastSummary },
    { summariser, signal, digest: budget.digest },
  );
  const text = reminderWithin(summary.text, (summary.by === summariser.name ? limit : spare) + reminderOverhead(counter), counter);
  if (text === undefined || (isRewrite && (summary.by !== summariser.name || text === made.text))) return view;
  const item: ViewItem = { kind: 'summary', text, tokens: counter.count(text) + counter.perMessage, summary };
  const tokens = others + item.tokens;
  return {
    ...view,
    items: view.items.map((one) => (isSummary(one) ? item : one)),
    tokens,
    shrunk: view.shrunk === undefined ? summaryAlone(view.state.gone, view.tokens, tokens) : { ...view.shrunk, after: tokens },
    state: { ...view.state, summary: { of: made.of, text, summary } },
  };
}
