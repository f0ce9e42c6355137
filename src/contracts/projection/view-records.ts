import type { ContextRecord, RecordBody } from '../../objects/context-record.js';
import { CHUNK_UNITS } from '../../objects/large-text.js';
import { defined } from '../../values/defined.js';
import type { BudgetedView, ViewItem } from './budgeted-view.js';
import type { Projection } from './project-session.js';
import { NO_VIEW, type ViewState } from './shrink-view.js';

/** Why a view is made, and for whom. */
export interface ViewPurpose {
  /** The recipient: `model`, or a surface by name. */
  readonly target: string;
  /** Why the view was requested: `token_pressure`, `manual`, `handoff` or another reason. */
  readonly trigger: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The surface whose later views continue from this one. Views of other surfaces ignore it. */
  readonly surface?: string;
}

/**
 * Maximum characters of a view's decisions in a record. If they are longer, the session's next view
 * starts without earlier decisions.
 */
const MOST_STATE = CHUNK_UNITS / 2;
/** Maximum number of ids in a view's record. */
const MOST_NAMED = 2_000;

type Segment = 'system' | 'chat' | 'results' | 'approvals' | 'summary';

function segmentOf(item: ViewItem): Segment {
  if (item.kind === 'summary') return 'summary';
  const { kind } = item.entry;
  if (kind === 'system') return 'system';
  if (kind === 'result') return 'results';
  return kind === 'approval' ? 'approvals' : 'chat';
}

function segmentsOf({ items, limits }: BudgetedView): NonNullable<RecordBody<'budget'>['segments']> {
  const sizes = new Map<Segment, number>();
  for (const item of items) sizes.set(segmentOf(item), (sizes.get(segmentOf(item)) ?? 0) + item.tokens);
  return [...sizes].map(([name, actual]) => ({
    name,
    actual,
    ...(name === 'summary' ? { reserved: limits.summary } : {}),
  }));
}

function compactionOf(view: BudgetedView, { trigger, surface }: ViewPurpose): RecordBody<'compaction'> | undefined {
  const { shrunk, state, counter, limits } = view;
  if (shrunk === undefined) return undefined;
  const named = (ids: readonly string[]): string[] => ids.slice(0, MOST_NAMED);
  const made = state.summary?.summary;
  const leftOut =
    shrunk.lines.length + shrunk.gone.length > 2 * MOST_NAMED ? ['not every id of what left is named here'] : [];
  const lost =
    made === undefined || made.lost.length === 0
      ? []
      : [`the summary does not name ${made.lost.length} of its identifiers`];
  return {
    counter,
    trigger,
    method:
      made === undefined ? 'structured_digest' : made.by === 'digest' ? 'structured_digest' : 'abstractive_summary',
    before: shrunk.before,
    after: shrunk.after,
    limit: limits.most,
    lines: named(shrunk.lines),
    gone: named(shrunk.gone),
    cut: named(shrunk.cut),
    ...(made === undefined
      ? {}
      : { summary: { text: made.text, by: made.by, identifiers: [...made.identifiers], lost: [...made.lost] } }),
    loss: [...lost, ...leftOut],
    ...(JSON.stringify(state).length > MOST_STATE ? {} : { state: JSON.parse(JSON.stringify(state)) }),
    ...(surface === undefined ? {} : { extra: { surface, steps: [...shrunk.steps] } }),
  };
}

/**
 * Returns the records of a view: its limit and its tokens, and the changed entries if it shrank.
 * `viewStateOf` reads from them the state for the next view. Equal views at one time give equal
 * records.
 */
export function viewRecords(
  projection: Projection,
  view: BudgetedView,
  purpose: ViewPurpose,
): readonly ContextRecord[] {
  const { target, at } = purpose;
  const { session, turn, seq, basis } = projection;
  const common = { owner: { session }, turn, seq, at, basis };
  const budget: RecordBody<'budget'> = {
    target,
    counter: view.counter,
    max: view.limits.most,
    actual: view.tokens,
    actualItems: view.items.length,
    overflow: 'summarize_oldest',
    segments: segmentsOf(view),
  };
  const compaction = compactionOf(view, purpose);
  return [
    { kind: 'budget', ...common, body: budget },
    ...(compaction === undefined ? [] : [{ kind: 'compaction' as const, ...common, body: compaction }]),
  ];
}

/** Returns the compactions of one surface. */
export function compactionsOf(
  records: readonly ContextRecord<'compaction'>[],
  surface: string,
): readonly ContextRecord<'compaction'>[] {
  return records.filter(({ body }) => (body.extra as { readonly surface?: string } | undefined)?.surface === surface);
}

/** Returns the state for a session's next view: the one in the last compaction record. */
export function viewStateOf(records: readonly ContextRecord<'compaction'>[]): ViewState {
  const last = [...records].sort((a, b) => a.at - b.at).findLast(({ body }) => body.state !== undefined);
  const { lines = [], gone = [], cut = {}, summary } = (last?.body.state ?? {}) as Partial<ViewState>;
  return last === undefined ? NO_VIEW : { lines, gone, cut, ...defined({ summary }) };
}
