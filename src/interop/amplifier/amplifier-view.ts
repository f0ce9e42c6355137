import { type BudgetedView, budgetedView } from '../../projection/budgeted-view.js';
import { cutText } from '../../projection/cut-text.js';
import type { Entry, TokenCounter } from '../../projection/entry.js';
import type { ViewState } from '../../projection/shrink-view.js';
import { defined } from '../../values/defined.js';
import type { Block } from './amplifier-message.js';
import { type GivenMessage, type MessageShape, messageOf, tokensOfBlock, whole } from './kept-shape.js';
import { type KeptShapes, type ListedEntry, promptMessages } from './message-list.js';

/** How a view for a request is asked for; the names are those of Amplifier's configuration. */
export interface ViewWish {
  /** The most tokens. */
  readonly budget: number;
  /** Shares of the limit: above which it gets smaller, and down to which. */
  readonly compactThreshold?: number;
  readonly targetUsage?: number;
  /** The share of the newest entries whose turns stay for as long as the limit allows. */
  readonly protectedRecent?: number;
  readonly protectedToolResults?: number;
  /** Larger results are shown without their middle. */
  readonly maxToolResultBytes?: number;
  /** Whether a summary stands for what is left out; true if left out. */
  readonly summary?: boolean;
  /** Whether system messages behind the prompt are shown; true if left out. */
  readonly preserveSystem?: boolean;
}

/** What a view is as Amplifier's messages. */
export interface MessagesView {
  readonly view: BudgetedView;
  readonly messages: readonly GivenMessage[];
}

/** About what a token of text takes. */
const BYTES_OF_TOKEN = 4;

/** What the blocks of a message take that are no words of its entry. */
function tokensOfBlocks({ message, isText, long = [] }: MessageShape, counter: TokenCounter): number {
  if (isText || !Array.isArray(message.content)) return 0;
  const known = new Map(long.map(({ at, tokens }) => [at, tokens]));
  return message.content.reduce((sum: number, block, at) => sum + (known.get(at) ?? tokensOfBlock(block as Block, counter)), 0);
}

/** An entry as it counts in a request: with its blocks, and a result of too many bytes without its middle. */
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

/** What a view is brought down to where nothing else is asked for, and what its summary may take, in shares of the limit. */
const TARGET = 0.75;
const SUMMARY = 0.1;

/**
 * How many turns before the last one fit into what a view is brought down to, with older results as their lines. Were more of them kept, it would have to get smaller again with each message, and begin with nothing of the
 * view before.
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
    const calls = entry.kind === 'assistant' ? entry.calls.reduce((sum, call) => sum + call.tokens + counter.perCall, 0) : 0;
    room -= counter.perMessage + calls + (isLine ? Math.min(entry.tokens, entry.lineTokens) : entry.tokens);
    if (room < 0) return Math.max(0, last - entry.turn - 1);
  }
  return last;
}

/** How many turns before the last one stay: those that the newest results reach into, and of those that the newest entries do as many as fit. */
function keptTurns(entries: readonly Entry[], counting: Counting): number {
  const { protectedRecent = 0, protectedToolResults = 0 } = counting.wish;
  const recent =
    protectedRecent === 0 ? undefined : entries[Math.min(entries.length - 1, Math.floor(entries.length * (1 - protectedRecent)))];
  const results = protectedToolResults === 0 ? [] : entries.filter(({ kind }) => kind === 'result').slice(-protectedToolResults);
  const last = entries.at(-1)?.turn ?? 0;
  const since = (entry: Entry | undefined): number => last - Math.min(last, entry?.turn ?? last);
  return Math.max(since(results[0]), Math.min(since(recent), fittingTurns(entries, counting)));
}

/**
 * The list within a limit of tokens, as messages: a result with its call, all results of a message behind it in the order of its calls. Pure; nothing of the list changes.
 * @throws {ProjectionError} `invalid-budget`, `budget-too-small`
 */
export function messagesView(listed: readonly ListedEntry[], counting: Counting & { readonly state: ViewState }): MessagesView {
  const { kept, wish, counter, state } = counting;
  const shown = listed.filter(({ entry }) => wish.preserveSystem !== false || entry.kind !== 'system' || entry.isPrompt);
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
    if (item.kind === 'summary') return [whole({ role: 'user', content: item.text, metadata: { source: 'palimpsest', kind: 'summary' } })];
    const { entry, form, text } = item;
    if (entry.kind === 'system' && entry.isPrompt) return promptMessages(entry.text, kept.prompts);
    const given = shapes.get(entry.id);
    const isWhole = form === 'full' && (entry.text ?? '') === (given?.text ?? '');
    return [messageOf(entry, given?.shape, isWhole ? undefined : text)];
  });
  return { view, messages };
}
