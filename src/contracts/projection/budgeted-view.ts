import { hashText } from '../../objects/hashes.js';
import type { Sha256 } from '../../objects/ids.js';
import { defined } from '../../values/defined.js';
import type { Entry, EntryId, TokenCounter } from './entry.js';
import type { Projection } from './project-session.js';
import {
  blocksOf,
  type EntryForm,
  NO_VIEW,
  resultsOf,
  type ShrinkStep,
  shrink,
  ViewDraft,
  type ViewState,
} from './shrink-view.js';
import { type Digest, digestOf, reminderOverhead, reminderWithin, type Summary } from './summary.js';
import { type ViewBudget, type ViewLimits, viewLimits } from './view-budget.js';

/** One item of a view. */
export type ViewItem =
  | {
      readonly kind: 'entry';
      readonly entry: Entry;
      readonly form: EntryForm;
      readonly text: string;
      readonly tokens: number;
    }
  /** Replaces the dropped entries: a message in the role of the user, between reminder tags. */
  | { readonly kind: 'summary'; readonly text: string; readonly tokens: number; readonly summary: Summary };

/** How a view was made smaller. */
export interface ViewShrink {
  readonly steps: readonly ShrinkStep[];
  /** Tokens of the view before and after shrinking. */
  readonly before: number;
  readonly after: number;
  /**
   * Entries that this view turned into a line, dropped, or cut. If the view only rewrote or dropped
   * the summary, `gone` has all dropped entries.
   */
  readonly lines: readonly EntryId[];
  readonly gone: readonly EntryId[];
  readonly cut: readonly EntryId[];
}

/** Returns the changes of a view in which only the summary changed. */
export const summaryAlone = (gone: readonly EntryId[], before: number, after: number): ViewShrink => ({
  steps: [],
  before,
  after,
  lines: [],
  gone,
  cut: [],
});

/** A session within a limit of tokens. */
export interface BudgetedView {
  readonly items: readonly ViewItem[];
  readonly tokens: number;
  /** The name of the counter of its tokens. */
  readonly counter: string;
  readonly limits: ViewLimits;
  readonly state: ViewState;
  /** Undefined if the view did not shrink. The view then begins with the whole previous view. */
  readonly shrunk: ViewShrink | undefined;
}

/** Key of the set of dropped entries. */
const goneKey = (entries: readonly Entry[]): Sha256 => hashText(entries.map(({ id }) => id).join('\n'));

interface MadeSummary {
  readonly item: ViewItem;
  readonly state: NonNullable<ViewState['summary']>;
}

function summaryItem(state: NonNullable<ViewState['summary']>, counter: TokenCounter): ViewItem {
  return {
    kind: 'summary',
    text: state.text,
    tokens: counter.count(state.text) + counter.perMessage,
    summary: state.summary,
  };
}

/**
 * Returns the summary of the dropped entries. Reuses the previous summary if it covers the same
 * entries and fits. Undefined if no entry was dropped or there is no room.
 */
function summaryOf(
  gone: readonly Entry[],
  {
    room,
    before,
    limits,
    spare,
    counter,
    digest,
    isCurrent,
  }: {
    room: number;
    before: ViewState['summary'];
    limits: ViewLimits;
    spare: number;
    counter: TokenCounter;
    digest: Digest;
    isCurrent: (text: string) => boolean;
  },
): MadeSummary | undefined {
  if (gone.length === 0) return undefined;
  const of = goneKey(gone);
  const most = Math.min(room, limits.summary) - counter.perMessage;
  if (before?.of === of && counter.count(before.text) <= room - counter.perMessage && isCurrent(before.summary.text))
    return { item: summaryItem(before, counter), state: before };
  const around = counter.perMessage + reminderOverhead(counter);
  const limit = most - reminderOverhead(counter);
  if (limit <= 0) return undefined;
  const free = Math.max(limit, Math.min(room, spare) - around);
  const summary = digest({ entries: gone, counter, limit, spare: free });
  const text = reminderWithin(summary.text, free + reminderOverhead(counter), counter);
  if (text === undefined) return undefined;
  const state = { of, text, summary };
  return { item: summaryItem(state, counter), state };
}

const added = (
  now: ReadonlySet<EntryId> | ReadonlyMap<EntryId, unknown>,
  before: Iterable<string>,
): readonly EntryId[] => {
  const known = new Set<string>(before);
  return [...now.keys()].filter((id) => !known.has(id));
};

function itemsOf(entries: readonly Entry[], draft: ViewDraft, summary: ViewItem | undefined): readonly ViewItem[] {
  const items: ViewItem[] = [];
  let waiting = summary;
  for (const entry of entries) {
    const form = draft.formOf(entry);
    if (form === undefined) {
      if (waiting !== undefined) items.push(waiting);
      waiting = undefined;
      continue;
    }
    items.push({ kind: 'entry', entry, form, text: draft.textOf(entry), tokens: draft.tokensOf(entry) });
  }
  return items;
}

/**
 * Returns whether the view can keep all decisions of the previous view and needs no further ones.
 */
function unchanged(draft: ViewDraft, limits: ViewLimits, room: number): boolean {
  return draft.tokens <= limits.most && draft.tokens + room <= Math.max(limits.trigger, 1);
}

/**
 * Returns a session's entries within a limit of tokens. Stored data does not change
 * (divergence 0016). If all entries fit, they stay in full. Otherwise the view shrinks in this
 * order, only as far as needed:
 *
 * - results that the session's retention no longer keeps become reference lines, then older results
 *   do
 * - the oldest turns after the first message and before pending entries are dropped whole, and a
 *   summary replaces them
 * - if the hard limit is exceeded, the newest results become lines, and the oldest groups of the
 *   last turn are dropped
 * - the middles of the user's first and newest messages are cut
 *
 * A message of the model and its results are kept or dropped together. Pending entries stay. The
 * same entries, budget and state give the same view. `state` holds the decisions of earlier views.
 * With it, the view begins with the whole previous view until it must shrink again.
 *
 * @throws {ProjectionError} `invalid-budget`; `budget-too-small`, with the minimum limit, if the
 *   entries that must stay exceed it
 */
export function budgetedView(
  projection: Pick<Projection, 'entries' | 'counter'>,
  budget: ViewBudget,
  state: ViewState = NO_VIEW,
): BudgetedView {
  const { entries, counter } = projection;
  const limits = viewLimits(budget);
  const users = entries.filter(({ kind }) => kind === 'user');
  const messages = [users[0], users.at(-1)].filter((entry) => entry !== undefined);
  const ends = new Set(messages.map(({ id }) => id));
  const begin = (): ViewDraft => new ViewDraft(entries, withoutEnds(state, ends), counter);
  let draft = begin();
  const stays = draft.gone.size === 0 ? 0 : goneTokens(state, counter);
  const before = draft.tokens + stays;
  const isDue = !unchanged(draft, limits, stays);
  let shrunk: ViewShrink | undefined;
  if (isDue) {
    const blocks = blocksOf(entries, (entry) => entry.kind === 'system' || ends.has(entry.id));
    const results = resultsOf(blocks).filter((result) => !state.gone.includes(result.id));
    const newest = new Set(results.slice(results.length - limits.keepResults).map(({ id }) => id));
    const lastTurn = entries.at(-1)?.turn ?? 0;
    const { draft: smaller, steps } = shrink({ begin, blocks, limits, lastTurn, newest, messages });
    draft = smaller;
    if (steps.length > 0) {
      shrunk = {
        steps,
        before,
        after: 0,
        lines: added(draft.lines, state.lines),
        gone: added(draft.gone, state.gone),
        cut: [...draft.cut].flatMap(([id, text]) => (state.cut[id] === text ? [] : [id])),
      };
    }
  }
  const gone = entries.filter(({ id }) => draft.gone.has(id));
  const summary = summaryOf(gone, {
    room: limits.most - draft.tokens,
    before: state.summary,
    limits,
    spare: limits.roomy - draft.tokens,
    counter,
    digest: budget.digest ?? digestOf,
    isCurrent: (text) => !(isDue || budget.renew === true) || budget.required?.isIn(text) !== false,
  });
  const items = itemsOf(entries, draft, summary?.item);
  const tokens = draft.tokens + (summary?.item.tokens ?? 0);
  if (shrunk !== undefined) shrunk = { ...shrunk, after: tokens };
  else if (summary?.state !== state.summary) shrunk = summaryAlone([...draft.gone], before, tokens);
  return {
    items,
    tokens,
    counter: counter.name,
    limits,
    state: {
      lines: [...draft.lines].filter((id) => !draft.gone.has(id)),
      gone: [...draft.gone],
      cut: Object.fromEntries(draft.cut),
      ...defined({ summary: summary?.state }),
    },
    shrunk,
  };
}

const goneTokens = ({ summary }: ViewState, counter: TokenCounter): number =>
  summary === undefined ? 0 : counter.count(summary.text) + counter.perMessage;

/**
 * Returns a state that does not drop the given messages. An earlier view may have dropped them
 * before they were the first or the newest.
 */
function withoutEnds(state: ViewState, ends: ReadonlySet<EntryId>): ViewState {
  const isThere = (id: EntryId): boolean => !ends.has(id);
  return { ...state, gone: state.gone.filter(isThere) };
}
