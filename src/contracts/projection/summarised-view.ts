import { type BudgetedView, budgetedView, summaryAlone, type ViewItem } from './budgeted-view.js';
import type { Projection } from './project-session.js';
import { NO_VIEW, type ViewState } from './shrink-view.js';
import { auditedSummary, reminderOverhead, reminderWithin, type Summariser } from './summary.js';
import type { ViewBudget } from './view-budget.js';

/** Options of a view with an optional summariser. */
export interface SummarisedViewOptions {
  /** The state of the previous view. */
  readonly state?: ViewState;
  /** Writes the summary. If absent, or if it fails or loses an identifier, the digest is used. */
  readonly summariser?: Summariser | undefined;
  /**
   * Asks the summariser for a new summary even if no further entry was dropped. If its summary is
   * rejected, the current one stays. Default: false.
   */
  readonly rewrite?: boolean;
  /** Aborts the wait for the summariser. The digest is then used. */
  readonly signal?: AbortSignal;
}

function isSummary(item: ViewItem): boolean {
  return item.kind === 'summary';
}

/**
 * Returns `budgetedView`. If entries were newly dropped, the summariser writes the summary, which
 * is audited. It is never longer than a digest may be, so the limit still holds. The summariser
 * reads the session's own entries, never an earlier summary.
 *
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
  const text = reminderWithin(
    summary.text,
    (summary.by === summariser.name ? limit : spare) + reminderOverhead(counter),
    counter,
  );
  if (text === undefined || (isRewrite && (summary.by !== summariser.name || text === made.text))) return view;
  const item: ViewItem = { kind: 'summary', text, tokens: counter.count(text) + counter.perMessage, summary };
  const tokens = others + item.tokens;
  return {
    ...view,
    items: view.items.map((one) => (isSummary(one) ? item : one)),
    tokens,
    shrunk:
      view.shrunk === undefined
        ? summaryAlone(view.state.gone, view.tokens, tokens)
        : { ...view.shrunk, after: tokens },
    state: { ...view.state, summary: { of: made.of, text, summary } },
  };
}
