import { defined } from '../../values/defined.js';
import { type BudgetedView, budgetedView } from '../projection/budgeted-view.js';
import { cutText } from '../projection/cut-text.js';
import type { Entry, TokenCounter } from '../projection/entry.js';
import type { ViewState } from '../projection/shrink-view.js';
import type { Block } from './amplifier-message.js';
import { type GivenMessage, type MessageShape, messageOf, tokensOfBlock, whole } from './kept-shape.js';
import { type KeptShapes, type ListedEntry, promptMessages } from './message-list.js';

/** Settings of a view. The names are those of Amplifier's configuration. */
export interface ViewWish {
  /** The token limit. */
  readonly budget: number;
  /** Shares of the limit: the size above which the view shrinks, and the size it shrinks to. */
  readonly compactThreshold?: number;
  readonly targetUsage?: number;
  /** Share of the entries, from the newest back, whose turns stay while the limit allows it. */
  readonly protectedRecent?: number;
  readonly protectedToolResults?: number;
  /** Maximum size of a result. The view omits the middle of a larger one. */
  readonly maxToolResultBytes?: number;
  /** Whether a summary replaces omitted entries; true if omitted. */
  readonly summary?: boolean;
  /** Whether system messages after the prompt are shown; true if omitted. */
  readonly preserveSystem?: boolean;
}

/** A view as Amplifier messages. */
export interface MessagesView {
  readonly view: BudgetedView;
  readonly messages: readonly GivenMessage[];
}

/** Approximate bytes of text per token. */
const BYTES_OF_TOKEN = 4;

/** Counts the tokens of blocks that are not part of the entry's text. */
function tokensOfBlocks({ message, isText, long = [] }: MessageShape, counter: TokenCounter): number {
  if (isText || !Array.isArray(message.content)) return 0;
  const known = new Map(long.map(({ at, tokens }) => [at, tokens]));
  return message.content.reduce(
    (sum: number, block, at) => sum + (known.get(at) ?? tokensOfBlock(block as Block, counter)),
    0,
  );
}

/**
 * Returns an entry with its size in a request: with all its blocks, but without the middle of an
 * oversized result.
 */
function countedEntry({ entry, shape }: ListedEntry, { kept, wish, counter }: Counting): Entry {
  if (entry.kind === 'approval') return entry;
  if (entry.kind === 'system' && entry.isPrompt) {
    const more = promptMessages(entry.text, kept.prompts).length - 1;
    return more <= 0 ? entry : { ...entry, tokens: entry.tokens + more * counter.perMessage };
  }
  const most = wish.maxToolResultBytes;
  if (entry.kind === 'result' && most !== undefined && entry.text !== null && Buffer.byteLength(entry.text) > most) {
    const text = cutText(entry.text, Math.max(1, Math.floor(most / BYTES_OF_TOKEN)), counter);
    return { ...entry, text, tokens: counter.count(text) };
  }
  const more = shape === undefined ? 0 : tokensOfBlocks(shape, counter);
  return more === 0 ? entry : { ...entry, tokens: entry.tokens + more };
}

interface Counting {
  readonly kept: KeptShapes;
  readonly wish: ViewWish;
  readonly counter: TokenCounter;
}

/**
 * Two shares of the limit: the default target size of a view, and the maximum size of its summary.
 */
const TARGET = 0.75;
const SUMMARY = 0.1;

/**
 * Returns how many turns before the last one fit into the target size if older results become
 * reference lines. If more turns stayed, each message would shrink the view again, and it would
 * lose the common prefix with the previous view.
 */
function fittingTurns(entries: readonly Entry[], { wish, counter }: Counting): number {
  const last = entries.at(-1)?.turn ?? 0;
  const { budget, targetUsage = TARGET, protectedToolResults = 0 } = wish;
  let room = budget * (targetUsage - (wish.summary === false ? 0 : SUMMARY));
  for (const entry of entries) if (entry.kind === 'system') room -= entry.tokens + counter.perMessage;
  let results = 0;
  for (const entry of entries.toReversed()) {
    if (entry.kind === 'system') continue;
    const isLine = entry.kind === 'result' && results++ >= protectedToolResults;
    const calls =
      entry.kind === 'assistant' ? entry.calls.reduce((sum, call) => sum + call.tokens + counter.perCall, 0) : 0;
    room -= counter.perMessage + calls + (isLine ? Math.min(entry.tokens, entry.lineTokens) : entry.tokens);
    if (room < 0) return Math.max(0, last - entry.turn - 1);
  }
  return last;
}

/**
 * Returns how many turns before the last one stay. The turns of the protected newest results always
 * stay. The turns of the protected newest entries stay if they fit.
 */
function keptTurns(entries: readonly Entry[], counting: Counting): number {
  const { protectedRecent = 0, protectedToolResults = 0 } = counting.wish;
  const recent =
    protectedRecent === 0
      ? undefined
      : entries[Math.min(entries.length - 1, Math.floor(entries.length * (1 - protectedRecent)))];
  const results =
    protectedToolResults === 0 ? [] : entries.filter(({ kind }) => kind === 'result').slice(-protectedToolResults);
  const last = entries.at(-1)?.turn ?? 0;
  const since = (entry: Entry | undefined): number => last - Math.min(last, entry?.turn ?? last);
  return Math.max(since(results[0]), Math.min(since(recent), fittingTurns(entries, counting)));
}

/**
 * Returns the list within a token limit as messages. The results of a message follow it in the
 * order of its calls. Pure.
 * @throws {ProjectionError} `invalid-budget`, `budget-too-small`
 */
export function messagesView(
  listed: readonly ListedEntry[],
  counting: Counting & { readonly state: ViewState },
): MessagesView {
  const { kept, wish, counter, state } = counting;
  const shown = listed.filter(
    ({ entry }) => wish.preserveSystem !== false || entry.kind !== 'system' || entry.isPrompt,
  );
  const entries = shown.map((one) => countedEntry(one, counting));
  const budget = {
    tokens: wish.budget,
    ...defined({
      trigger: wish.compactThreshold,
      target: wish.targetUsage,
      keepResults: wish.protectedToolResults,
      keepTurns: keptTurns(entries, counting),
      summary: wish.summary === false ? 0 : undefined,
    }),
  };
  const view = budgetedView({ entries, counter }, budget, state);
  const shapes = new Map(shown.map(({ entry, shape }) => [entry.id, { shape, text: entry.text }]));
  const messages = view.items.flatMap((item): readonly GivenMessage[] => {
    if (item.kind === 'summary')
      return [whole({ role: 'user', content: item.text, metadata: { source: 'palimpsest', kind: 'summary' } })];
    const { entry, form, text } = item;
    if (entry.kind === 'system' && entry.isPrompt) return promptMessages(entry.text, kept.prompts);
    const given = shapes.get(entry.id);
    const isWhole = form === 'full' && (entry.text ?? '') === (given?.text ?? '');
    return [messageOf(entry, given?.shape, isWhole ? undefined : text)];
  });
  return { view, messages };
}
