import { LRUCache } from 'lru-cache';
import { usableLines } from '../../session/used-lines.js';
import { commonLength } from '../../values/common-length.js';
import { tokensOf } from '../../values/token-estimate.js';
import type { PolicyRequest, Reach, RequestPart } from '../policies/policy.js';
import { isCold, PRICE_TABLES, type PriceTable, requestCost } from '../prices/price-table.js';
import type { NeededLine, NeededLines } from '../timeline/needed-lines.js';
import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';

/** Where the lines that answers needed were found. */
export interface NeededCounts {
  readonly lines: number;
  /** A text of the request held the line. */
  readonly kept: number;
  /** The request lacked it but named its object: one `activate` away. */
  readonly activate: number;
  /** Not reachable by id, but in an unchanged file that can be read again. */
  readonly readAgain: number;
  /** None of the above. */
  readonly lost: number;
  /** Calls with needed lines, and the calls among them that had all. */
  readonly calls: number;
  readonly callsKept: number;
}

/** A figure for each call of a session, for the plots. */
export interface CallSeries {
  readonly tokens: readonly number[];
  readonly cost: readonly number[];
  /** The share of the request that equals the start of the previous one. */
  readonly same: readonly number[];
  readonly missed: readonly number[];
}

/**
 * The score of a policy on one session. Tokens are estimates. Prices are in tokens at the price of
 * a fresh one.
 */
export interface PolicyScore {
  readonly calls: number;
  readonly tokens: { readonly total: number; readonly mean: number; readonly peak: number };
  /** Tokens in the common prefix of a request and the one before. */
  readonly same: number;
  /**
   * Tokens read from the cache under the first price table: common prefixes in calls within its
   * lifetime.
   */
  readonly hits: number;
  /** Costs by the name of the price table. */
  readonly cost: Readonly<Record<string, number>>;
  /** The price under the first table with a further call for each needed text that was missing. */
  readonly costWithRepeats: number;
  readonly needed: NeededCounts;
  /**
   * Calls with all thinking of the running turn intact, and calls before which a lack of room
   * removed thinking.
   */
  readonly reasoning: { readonly kept: number; readonly pressed: number };
  /** Results that a model would have had to fetch again, counted once per turn. */
  readonly repeats: number;
  /** Mean tokens per call of results that show an outdated file. */
  readonly stale: number;
  /** Requests that do not begin with the whole request before. */
  readonly rewrites: number;
  /** Bytes written for contexts in all calls; undefined if the policy stores nothing. */
  readonly stored: number | undefined;
  /**
   * The number of calls before the first one that missed something or that the recorded model made
   * with a summary. Up to there, the recorded answers are valid for the policy.
   */
  readonly exact: number;
  /** Calls whose request exceeds the window. */
  readonly overWindow: number;
  readonly series: CallSeries;
}

/** Returns the length of the common prefix of two requests in characters. */
function sharedChars(before: readonly RequestPart[], now: readonly RequestPart[]): number {
  let chars = 0;
  for (const [at, part] of now.entries()) {
    const old = before[at];
    if (old === undefined) break;
    if (old === part || old.text === part.text) {
      chars += part.text.length;
      continue;
    }
    return chars + commonLength(old.text, part.text);
  }
  return chars;
}

interface ScoreOptions {
  readonly reach: Reach;
  readonly needed: NeededLines;
  /** The model's window in tokens. */
  readonly window: number;
  /** True if the requests are those that the recorded model received. */
  readonly asRecorded: boolean;
}

/**
 * Number of texts whose lines are cached. An epoch has tens of texts; our other contexts are new at
 * every call.
 */
const KEPT_TEXTS = 256;
const COMPARED: PriceTable = PRICE_TABLES[0];

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
  #exact: number | undefined;
  #overWindow = 0;
  #repeats = 0;
  #repeatCost = 0;
  #reasoning = { kept: 0, pressed: 0, broken: false };
  readonly #cost: Record<string, number> = Object.fromEntries(PRICE_TABLES.map(({ name }) => [name, 0]));
  readonly #needed = { lines: 0, kept: 0, activate: 0, readAgain: 0, lost: 0, calls: 0, callsKept: 0 };
  readonly #series = { tokens: [] as number[], cost: [] as number[], same: [] as number[], missed: [] as number[] };
  /** The lines of the policy's own texts, which recur at every call. */
  readonly #lines = new LRUCache<string, ReadonlySet<string>>({ max: KEPT_TEXTS });
  /** Items that a model would have fetched in the running turn. */
  readonly #fetched = new Set<TimelineItem>();

  constructor(timeline: Timeline, options: ScoreOptions) {
    this.#timeline = timeline;
    this.#options = options;
  }

  take({ parts, stored, pressed = false }: PolicyRequest): void {
    const call = this.#timeline.calls[this.#at];
    if (call === undefined) throw new Error(`a request for call ${this.#at} of ${this.#timeline.calls.length}`);
    const before = this.#before;
    const size = parts.reduce((sum, { text }) => sum + text.length, 0);
    const same = before === undefined ? 0 : sharedChars(before.parts, parts);
    const isRewritten = before !== undefined && same < before.size;
    if (isRewritten) this.#rewrites += 1;
    this.#reason(call, isRewritten, pressed);
    this.#total += size;
    this.#peak = Math.max(this.#peak, size);
    this.#same += same;
    if (tokensOf(size) > this.#options.window) this.#overWindow += 1;
    if (stored !== undefined) this.#stored = (this.#stored ?? 0) + stored;
    for (const table of PRICE_TABLES) {
      const cached = isCold(table, call, before?.call) ? 0 : same;
      const cost = tokensOf(requestCost(table, { size, same: cached }));
      this.#cost[table.name] = (this.#cost[table.name] ?? 0) + cost;
      if (table !== COMPARED) continue;
      this.#hits += cached;
      this.#series.cost.push(cost);
    }
    this.#series.tokens.push(tokensOf(size));
    this.#series.same.push(size === 0 ? 0 : same / size);
    this.#series.missed.push(this.#need(call, parts, size));
    for (const { item } of parts)
      if (item?.staleFrom !== undefined && item.staleFrom <= call.index) this.#stale += item.text.length;
    this.#before = { parts, size, call };
    this.#at += 1;
  }

  finish(): PolicyScore {
    const calls = this.#at;
    if (calls !== this.#timeline.calls.length)
      throw new Error(`${calls} requests for ${this.#timeline.calls.length} calls`);
    const cost = { ...this.#cost };
    return {
      calls,
      tokens: {
        total: tokensOf(this.#total),
        mean: tokensOf(this.#total) / Math.max(1, calls),
        peak: tokensOf(this.#peak),
      },
      same: tokensOf(this.#same),
      hits: tokensOf(this.#hits),
      cost,
      costWithRepeats: (cost[COMPARED.name] ?? 0) + this.#repeatCost,
      needed: { ...this.#needed },
      reasoning: { kept: this.#reasoning.kept, pressed: this.#reasoning.pressed },
      repeats: this.#repeats,
      stale: tokensOf(this.#stale) / Math.max(1, calls),
      rewrites: this.#rewrites,
      stored: this.#stored,
      exact: this.#options.asRecorded
        ? calls
        : Math.min(this.#exact ?? calls, this.#timeline.compactions[0]?.before ?? calls),
      overWindow: this.#overWindow,
      series: this.#series,
    };
  }

  /**
   * Within a turn, a request must begin with the whole request before. Otherwise thinking blocks of
   * the turn lose their binding to the preceding text.
   */
  #reason(call: ModelCall, isRewritten: boolean, pressed: boolean): void {
    if (call.opensTurn || this.#before === undefined) {
      this.#reasoning.broken = false;
      this.#fetched.clear();
    } else if (isRewritten) {
      this.#reasoning.broken = true;
      if (pressed) this.#reasoning.pressed += 1;
    }
    if (!this.#reasoning.broken) this.#reasoning.kept += 1;
  }

  /** Looks for the needed lines of a call in its request. Returns the number of missing lines. */
  #need(call: ModelCall, parts: readonly RequestPart[], size: number): number {
    const needed = this.#options.needed[call.index] ?? [];
    if (needed.length === 0) return 0;
    const items = new Set(parts.map(({ item }) => item));
    const own = parts.filter(({ item }) => item === undefined);
    const missing = needed.filter(({ line, holders }) => {
      return !holders.some((holder) => items.has(holder)) && !own.some(({ text }) => this.#linesOf(text).has(line));
    });
    this.#needed.lines += needed.length;
    this.#needed.kept += needed.length - missing.length;
    this.#needed.calls += 1;
    if (missing.length === 0) this.#needed.callsKept += 1;
    else this.#exact ??= call.index;
    for (const one of missing) this.#miss(one, call, size);
    return missing.length;
  }

  #miss({ holders }: NeededLine, call: ModelCall, size: number): void {
    const newest = holders.at(-1);
    const isThere = holders.some(
      ({ files, staleFrom }) => files.shows.length > 0 && (staleFrom === undefined || staleFrom > call.index),
    );
    if (this.#options.reach === 'activate') this.#needed.activate += 1;
    else if (isThere) this.#needed.readAgain += 1;
    else this.#needed.lost += 1;
    if (newest === undefined || holders.some((holder) => this.#fetched.has(holder))) return;
    this.#fetched.add(newest);
    this.#repeats += 1;
    const { read, write } = COMPARED;
    const left = this.#timeline.calls.slice(call.index).findIndex(({ opensTurn }, i) => i > 0 && opensTurn);
    const rest = left < 0 ? this.#timeline.calls.length - call.index : left;
    // One more call over the same context, and the text in every later call of the turn.
    this.#repeatCost += tokensOf(read * size + newest.text.length * (write + read * rest));
  }

  #linesOf(text: string): ReadonlySet<string> {
    const known = this.#lines.get(text) ?? usableLines(text);
    this.#lines.set(text, known);
    return known;
  }
}
