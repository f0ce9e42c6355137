import { tokensOf } from '../../values/token-estimate.js';
import type { ContextPolicy, PolicyRequest, RequestPart } from '../policies/policy.js';
import { isCold, PRICE_TABLES, type PriceTable, requestCost } from '../prices/price-table.js';
import type { NeededLines } from '../timeline/needed-lines.js';
import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';
import { KeptLines, type NeededCounts } from './kept-lines.js';
import { sharedChars } from './shared-chars.js';

/**
 * The parts of a cost under the first price table, in units of the price of an uncached input
 * token.
 */
export const COST_PARTS = ['fixed', 'guide', 'requests', 'misses', 'summaries', 'output'] as const;
export type CostParts = Record<(typeof COST_PARTS)[number], number>;

/** The figures of each call of a session. */
export interface CallSeries {
  /** Tokens of the request, including system prompt, tools and the policy's guide. */
  readonly tokens: readonly number[];
  /** The call's whole price under the first price table. */
  readonly cost: readonly number[];
  /** The share of the request that is a common prefix with the previous request. */
  readonly same: readonly number[];
  /**
   * Number of needed lines, of needed lines that the request lacked, and of those lines that came
   * from inputs.
   */
  readonly needed: readonly number[];
  readonly missed: readonly number[];
  readonly missedInputs: readonly number[];
}

/** A policy's score on one session. Token counts are estimates. */
export interface PolicyScore {
  readonly calls: number;
  readonly tokens: { readonly total: number; readonly peak: number };
  /** Tokens of the prefixes that requests share with the previous request. */
  readonly same: number;
  /** Tokens read from the cache, under the first price table. */
  readonly hits: number;
  /** The whole cost by name of price table. */
  readonly cost: Readonly<Record<string, number>>;
  readonly parts: Readonly<CostParts>;
  readonly needed: NeededCounts;
  /**
   * Number of calls that kept all thinking of their turn, and of calls that lost it because the
   * request was too large.
   */
  readonly reasoning: { readonly kept: number; readonly pressed: number };
  /** Number of texts that the model would have had to fetch, each once per turn. */
  readonly repeats: number;
  /** Average tokens per call of results that show an outdated file. */
  readonly stale: number;
  /** Number of requests that do not begin with the whole previous request. */
  readonly rewrites: number;
  /** Bytes written for contexts in all calls; undefined if the policy stores nothing. */
  readonly stored: number | undefined;
  /**
   * Number of calls, from the first, for which the recorded answer is also valid under the policy.
   */
  readonly exact: number;
  /** Number of calls, from the first, whose requests fit the window. */
  readonly fits: number;
  readonly series: CallSeries;
}

interface ScoreOptions {
  readonly policy: Pick<ContextPolicy, 'reach' | 'guide' | 'asRecorded' | 'keepsReasoning'>;
  readonly needed: NeededLines;
  /** The model's window in tokens. */
  readonly window: number;
  /** Tokens of system prompt and tools that precede every request and are not in the recording. */
  readonly fixed: number;
}

const COMPARED: PriceTable = PRICE_TABLES[0];
/** Number of tokens of an answer that only fetches a text. */
const FETCH_TOKENS = 80;

/** Scores the requests of one policy for one session, in order. */
export class Scorer {
  readonly #timeline: Timeline;
  readonly #options: ScoreOptions;
  #before: { readonly parts: readonly RequestPart[]; readonly size: number; readonly call: ModelCall } | undefined;
  #at = 0;
  #total = 0;
  #peak = 0;
  #same = 0;
  #hits = 0;
  #stale = 0;
  #rewrites = 0;
  #stored: number | undefined;
  #fits: number | undefined;
  #reasoning = { kept: 0, pressed: 0, broken: false };
  readonly #cost: Record<string, number> = Object.fromEntries(PRICE_TABLES.map(({ name }) => [name, 0]));
  readonly #parts: CostParts = { fixed: 0, guide: 0, requests: 0, misses: 0, summaries: 0, output: 0 };
  readonly #series = {
    tokens: [] as number[],
    cost: [] as number[],
    same: [] as number[],
  };
  readonly #kept: KeptLines;
  constructor(timeline: Timeline, options: ScoreOptions) {
    this.#timeline = timeline;
    this.#options = options;
    this.#kept = new KeptLines(options.needed, options.policy.reach);
  }

  take({ parts, stored, pressed = false, summarised }: PolicyRequest): void {
    const call = this.#timeline.calls[this.#at];
    if (call === undefined) throw new Error(`a request for call ${this.#at} of ${this.#timeline.calls.length}`);
    const before = this.#before;
    let size = 0;
    for (const { item, text } of parts) {
      size += text.length;
      if (item?.staleFrom !== undefined && item.staleFrom <= call.index) this.#stale += text.length;
    }
    const same = before === undefined ? 0 : sharedChars(before.parts, parts);
    const isRewritten = before !== undefined && same < before.size;
    if (isRewritten) this.#rewrites += 1;
    this.#reason(call, isRewritten && this.#options.policy.keepsReasoning === undefined, pressed);
    const tokens = tokensOf(size) + this.#ahead;
    this.#total += tokens;
    this.#peak = Math.max(this.#peak, tokens);
    this.#same += tokensOf(same);
    if (tokens > this.#options.window) this.#fits ??= call.index;
    if (stored !== undefined) this.#stored = (this.#stored ?? 0) + stored;
    const fetched = this.#kept.take(call, parts);
    for (const table of PRICE_TABLES) {
      const isLost = isCold(table, call, before?.call);
      const priced = this.#priced(table, call, { size, same: isLost ? 0 : same, isLost, fetched, summarised });
      const cost = Object.values(priced).reduce((sum, one) => sum + one, 0);
      this.#cost[table.name] = (this.#cost[table.name] ?? 0) + cost;
      if (table !== COMPARED) continue;
      this.#hits += isLost ? 0 : tokensOf(same) + this.#ahead;
      this.#series.cost.push(cost);
      for (const part of COST_PARTS) this.#parts[part] += priced[part];
    }
    this.#series.tokens.push(tokens);
    this.#series.same.push(size === 0 ? 0 : same / size);
    this.#before = { parts, size, call };
    this.#at += 1;
  }

  finish(): PolicyScore {
    const calls = this.#at;
    if (calls !== this.#timeline.calls.length)
      throw new Error(`${calls} requests for ${this.#timeline.calls.length} calls`);
    const { counts, repeats, firstMiss, needed, missed, missedInputs } = this.#kept;
    return {
      calls,
      tokens: { total: this.#total, peak: this.#peak },
      same: this.#same,
      hits: this.#hits,
      cost: { ...this.#cost },
      parts: { ...this.#parts },
      needed: { ...counts },
      reasoning: { kept: this.#reasoning.kept, pressed: this.#reasoning.pressed },
      repeats,
      stale: tokensOf(this.#stale) / Math.max(1, calls),
      rewrites: this.#rewrites,
      stored: this.#stored,
      exact:
        this.#options.policy.asRecorded === true
          ? calls
          : Math.min(firstMiss ?? calls, this.#timeline.compactions[0]?.before ?? calls),
      fits: this.#fits ?? calls,
      series: { ...this.#series, needed, missed, missedInputs },
    };
  }

  /** Tokens before every request: system prompt, tools and the policy's guide. */
  get #ahead(): number {
    return this.#options.fixed + tokensOf(this.#options.policy.guide);
  }

  /** Returns the price of a call, divided into its parts. */
  #priced(
    table: PriceTable,
    call: ModelCall,
    of: {
      readonly size: number;
      readonly same: number;
      readonly isLost: boolean;
      readonly fetched: readonly TimelineItem[];
      readonly summarised: PolicyRequest['summarised'];
    },
  ): CostParts {
    const { size, same, isLost, fetched, summarised } = of;
    const { read, write, output } = table;
    const said = call.recorded?.output ?? tokensOf(call.outputs.reduce((sum, { text }) => sum + text.length, 0));
    const rest = fetched.length === 0 ? 0 : this.#callsLeftInTurn(call);
    const context = tokensOf(size) + this.#ahead;
    const ahead = isLost ? write : read;
    return {
      fixed: ahead * this.#options.fixed,
      guide: ahead * tokensOf(this.#options.policy.guide),
      requests: tokensOf(requestCost(table, { size, same })),
      // A fetch costs one more call with the same context. The fetched text then stays in the later
      // requests of the turn.
      misses: fetched.reduce(
        (sum, { text }) => sum + read * context + output * FETCH_TOKENS + tokensOf(text.length) * (write + read * rest),
        0,
      ),
      summaries:
        summarised === undefined
          ? 0
          : ahead * (tokensOf(summarised.read) + this.#ahead) + output * tokensOf(summarised.written),
      output: output * said,
    };
  }

  #callsLeftInTurn({ index }: ModelCall): number {
    const { calls } = this.#timeline;
    let next = index + 1;
    while (next < calls.length && calls[next]?.opensTurn === false) next += 1;
    return next - index - 1;
  }

  /**
   * Counts the calls that keep their reasoning. Within a turn, a request must begin with the whole
   * previous request. Otherwise the turn's thinking blocks become invalid, because they are bound
   * to the text before them.
   */
  #reason(call: ModelCall, isBroken: boolean, pressed: boolean): void {
    if (call.opensTurn || this.#before === undefined) this.#reasoning.broken = false;
    else if (isBroken) {
      this.#reasoning.broken = true;
      if (pressed) this.#reasoning.pressed += 1;
    }
    if (!this.#reasoning.broken) this.#reasoning.kept += 1;
  }
}
