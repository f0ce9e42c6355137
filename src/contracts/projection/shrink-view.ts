import type { Sha256 } from '../../objects/ids.js';
import { cutText } from './cut-text.js';
import type { Entry, EntryId, ResultEntry, TokenCounter } from './entry.js';
import { ProjectionError } from './errors.js';
import type { Summary } from './summary.js';
import type { ViewLimits } from './view-budget.js';

/**
 * The form of an entry in a view: in full, a result as its reference line, or a message without its
 * middle.
 */
export type EntryForm = 'full' | 'line' | 'cut';

/**
 * The decisions of a session's views so far. The next view continues from them, and each view only
 * adds decisions. Plain data, so that a record can hold it.
 */
export interface ViewState {
  /** Results shown as their reference line, without dropped results. */
  readonly lines: readonly EntryId[];
  /** Dropped entries. */
  readonly gone: readonly EntryId[];
  /** Shortened messages of the user: the text shown in place of each. */
  readonly cut: Readonly<Record<EntryId, string>>;
  /** The summary of the dropped entries. `of` is the SHA-256 of their ids, one per line. */
  readonly summary?: { readonly of: Sha256; readonly text: string; readonly summary: Summary };
}

/** The state before the first view. */
export const NO_VIEW: ViewState = { lines: [], gone: [], cut: {} };

/** The ways to shrink a view, in the order of trial. */
export type ShrinkStep = 'retention' | 'lines' | 'turns' | 'pressure' | 'cut';

/**
 * Entries that are kept or dropped together: a message of the model with its results, or a single
 * entry.
 */
export interface Block {
  readonly entries: readonly Entry[];
  readonly turn: number;
  /** True if a call or an approval awaits its answer. */
  readonly isPending: boolean;
  /** True if the block always stays. */
  readonly isFixed: boolean;
}

function isPending(entry: Entry): boolean {
  if (entry.kind === 'approval') return entry.state === 'pending';
  return entry.kind === 'assistant' && entry.calls.some(({ state }) => state === 'pending');
}

/** Returns the blocks of some entries, in order. */
export function blocksOf(entries: readonly Entry[], isFixed: (entry: Entry) => boolean): readonly Block[] {
  const blocks: Block[] = [];
  for (let at = 0; at < entries.length; ) {
    const first = entries[at] as Entry;
    let end = at + 1;
    while (entries[end]?.kind === 'result') end += 1;
    const own = entries.slice(at, end);
    blocks.push({ entries: own, turn: first.turn, isPending: isPending(first), isFixed: isFixed(first) });
    at = end;
  }
  return blocks;
}

const fullTokens = (entry: Entry, counter: TokenCounter): number =>
  entry.tokens +
  counter.perMessage +
  (entry.kind === 'assistant' ? entry.calls.reduce((sum, call) => sum + call.tokens + counter.perCall, 0) : 0);

/** A view while it is made smaller. */
export class ViewDraft {
  readonly lines: Set<EntryId>;
  readonly gone: Set<EntryId>;
  readonly cut: Map<EntryId, string>;
  readonly #counter: TokenCounter;
  /** Tokens of the entries, without the summary. */
  tokens = 0;
  readonly #cutTokens = new Map<EntryId, number>();

  constructor(entries: readonly Entry[], state: ViewState, counter: TokenCounter) {
    this.#counter = counter;
    this.lines = new Set(state.lines);
    this.gone = new Set(state.gone);
    this.cut = new Map(Object.entries(state.cut)) as Map<EntryId, string>;
    for (const entry of entries) this.tokens += this.tokensOf(entry);
  }

  formOf(entry: Entry): EntryForm | undefined {
    if (this.gone.has(entry.id)) return undefined;
    if (this.cut.has(entry.id)) return 'cut';
    return this.lines.has(entry.id) ? 'line' : 'full';
  }

  tokensOf(entry: Entry): number {
    const form = this.formOf(entry);
    if (form === undefined) return 0;
    if (form === 'line' && entry.kind === 'result') return entry.lineTokens + this.#counter.perMessage;
    return form === 'cut' ? this.#tokensOfCut(entry.id) + this.#counter.perMessage : fullTokens(entry, this.#counter);
  }

  textOf(entry: Entry): string {
    const form = this.formOf(entry);
    if (form === 'line' && entry.kind === 'result') return entry.line;
    return (form === 'cut' ? this.cut.get(entry.id) : entry.text) ?? '';
  }

  /** Returns whether a result would be shorter as its reference line. */
  collapses(entry: Entry): entry is ResultEntry {
    return entry.kind === 'result' && this.formOf(entry) === 'full' && entry.lineTokens < entry.tokens;
  }

  collapse(entry: ResultEntry): void {
    this.#change(entry, () => this.lines.add(entry.id));
  }

  drop({ entries }: Block): void {
    for (const entry of entries) this.#change(entry, () => this.gone.add(entry.id));
  }

  isGone({ entries }: Block): boolean {
    return entries.every(({ id }) => this.gone.has(id));
  }

  /** Cuts a message by at least the given number of tokens, if it is long enough. */
  shorten(entry: Entry, tooMany: number): void {
    const before = this.textOf(entry);
    const text = cutText(entry.text ?? '', Math.max(0, this.#counter.count(before) - tooMany), this.#counter);
    if (this.#counter.count(text) >= this.#counter.count(before)) return;
    this.#change(entry, () => {
      this.cut.set(entry.id, text);
      this.#cutTokens.delete(entry.id);
    });
  }

  #change(entry: Entry, change: () => void): void {
    this.tokens -= this.tokensOf(entry);
    change();
    this.tokens += this.tokensOf(entry);
  }

  #tokensOfCut(id: EntryId): number {
    const known = this.#cutTokens.get(id) ?? this.#counter.count(this.cut.get(id) ?? '');
    this.#cutTokens.set(id, known);
    return known;
  }
}

/** The input of a shrinking step. */
interface Shrinking {
  readonly draft: ViewDraft;
  /** True if no entry may be dropped. Results then become lines, and messages are cut. */
  readonly keepsAll: boolean;
  readonly blocks: readonly Block[];
  readonly limits: ViewLimits;
  /** The last turn, which may be running. */
  readonly lastTurn: number;
  /** The newest results, which stay in full while the limit allows it. */
  readonly newest: ReadonlySet<EntryId>;
  /** The user's first and newest messages, which always stay. */
  readonly messages: readonly Entry[];
}

type Shrink = (shrinking: Shrinking) => void;

/** Returns the results in some blocks. */
export const resultsOf = (blocks: readonly Block[]): readonly ResultEntry[] =>
  blocks.flatMap(({ entries }) => entries.flatMap((entry) => (entry.kind === 'result' ? [entry] : [])));

const isHeld = ({ active, pinned }: ResultEntry): boolean => active || pinned;

/** Tokens reserved for the summary once entries are dropped. */
const reserved = ({ draft, limits }: Shrinking): number => (draft.gone.size === 0 ? 0 : limits.summary);
const sizeOf = (shrinking: Shrinking): number => shrinking.draft.tokens + reserved(shrinking);
/** Minimum tokens of the view, including the required text of its summary. */
const leastOf = ({ draft, limits }: Shrinking): number =>
  draft.tokens + (draft.gone.size === 0 ? 0 : limits.leastSummary);

/** The steps in the order of trial. Each runs only if the earlier ones were not enough. */
const SHRINKS: readonly (readonly [ShrinkStep, (limits: ViewLimits) => number, Shrink])[] = [
  [
    'retention',
    ({ target }) => target,
    // All results that the session's retention no longer keeps become lines at once, so that the
    // provider's cached prefix breaks only once.
    ({ draft, blocks, newest }) => {
      for (const result of resultsOf(blocks))
        if (!isHeld(result) && !newest.has(result.id) && draft.collapses(result)) draft.collapse(result);
    },
  ],
  [
    'lines',
    ({ target }) => target,
    ({ draft, blocks, limits, newest }) => {
      for (const result of resultsOf(blocks)) {
        if (draft.tokens <= limits.target) return;
        if (!result.pinned && !newest.has(result.id) && draft.collapses(result)) draft.collapse(result);
      }
    },
  ],
  [
    'turns',
    ({ target }) => target,
    (shrinking) => {
      const { draft, blocks, limits, lastTurn, keepsAll } = shrinking;
      if (keepsAll) return;
      const pending = blocks.find((block) => block.isPending && block.turn > 0)?.turn ?? Number.POSITIVE_INFINITY;
      const end = Math.min(pending, lastTurn - limits.keepTurns);
      let turn: number | undefined;
      for (const block of blocks) {
        if (block.turn >= end) return;
        if (block.isFixed || draft.isGone(block)) continue;
        // The size is checked only between turns, so that a turn is dropped whole.
        if (block.turn !== turn && sizeOf(shrinking) <= limits.target) return;
        turn = block.turn;
        draft.drop(block);
      }
    },
  ],
  [
    'pressure',
    ({ most }) => most,
    (shrinking) => {
      const { draft, blocks, limits, keepsAll } = shrinking;
      for (const result of resultsOf(blocks)) {
        if (sizeOf(shrinking) <= limits.most) return;
        if (draft.collapses(result)) draft.collapse(result);
      }
      if (keepsAll) return;
      for (const block of blocks) {
        // Counts only the required text of the summary, which shrinks before more entries are
        // dropped.
        if (leastOf(shrinking) <= limits.most) return;
        if (limits.keepBehindPending && block.isPending) return;
        if (!block.isFixed && !block.isPending && !draft.isGone(block)) draft.drop(block);
      }
    },
  ],
  [
    'cut',
    ({ most }) => most,
    (shrinking) => {
      const { draft, limits, messages } = shrinking;
      for (const message of messages) {
        if (leastOf(shrinking) <= limits.most) return;
        draft.shorten(message, leastOf(shrinking) - limits.most);
      }
    },
  ],
];

/**
 * Returns whether a view fits, so that a step is not needed. The step `cut` counts only the
 * summary's required text, because the summary gets shorter before messages are cut. Other steps
 * count the full reserve for the summary.
 */
const fits = (shrinking: Shrinking, step: ShrinkStep, limit: number): boolean =>
  (step === 'cut' ? leastOf(shrinking) : sizeOf(shrinking)) <= limit;

function tooSmall(limits: ViewLimits, least: number): ProjectionError {
  const pending = limits.keepBehindPending
    ? 'everything from the first pending call or approval on'
    : 'all pending entries';
  const required =
    limits.leastSummary === 0 ? '' : `, the ${limits.leastSummary} tokens of the summary's required text`;
  return new ProjectionError(
    'budget-too-small',
    `the system's messages, ${pending}${required} and the user's first and newest messages take ${least} tokens, ` +
      `but the limit is ${limits.most}: give at least ${least}`,
    { least },
  );
}

/** A view after shrinking, with the steps that were needed. */
interface Shrunk {
  readonly draft: ViewDraft;
  readonly steps: readonly ShrinkStep[];
}

function applySteps(shrinking: Shrinking): Shrunk & { readonly least: number } {
  const { draft, limits } = shrinking;
  const steps: ShrinkStep[] = [];
  for (const [step, limitOf, apply] of SHRINKS) {
    if (fits(shrinking, step, limitOf(limits))) continue;
    const before = draft.tokens;
    apply(shrinking);
    if (draft.tokens < before) steps.push(step);
  }
  return { draft, steps, least: leastOf(shrinking) };
}

/**
 * Shrinks a view until it fits. Prefers a view with all entries if it also fits and is no larger. A
 * summary's required text may be longer than the dropped entries.
 *
 * @throws {ProjectionError} `budget-too-small`
 */
export function shrink(asked: Omit<Shrinking, 'draft' | 'keepsAll'> & { readonly begin: () => ViewDraft }): Shrunk {
  const { limits } = asked;
  const shrunk = applySteps({ ...asked, draft: asked.begin(), keepsAll: false });
  if (shrunk.draft.gone.size === 0 || limits.leastSummary === 0) {
    if (shrunk.least > limits.most) throw tooSmall(limits, shrunk.least);
    return shrunk;
  }
  const whole = applySteps({ ...asked, draft: asked.begin(), keepsAll: true });
  const least = Math.min(shrunk.least, whole.least);
  if (least > limits.most) throw tooSmall(limits, least);
  return whole.least <= Math.min(shrunk.least, limits.most) ? whole : shrunk;
}
