import { isCold, type PriceTable, requestCost } from '../prices/price-table.js';
import { neededLines } from '../timeline/needed-lines.js';
import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';
import { callLine } from './masking.js';
import { type ContextPolicy, itemsOf, type PolicyRequest, type RequestPart, wholePart } from './policy.js';

/**
 * Where a clairvoyant policy may rewrite the context. `by rent`: only once the waste of not
 * rewriting exceeds the rewrite's price (the ski-rental rule).
 */
type Where = 'at borders' | 'at borders by rent' | 'anywhere';

/** Maximum number of calls to choose from; the search over more would take too long. */
const MOST_CHOICES = 1_000;

/**
 * Returns, for each result and each call's arguments, the last model call that needs it. A needed
 * line counts only for the newest item that contains it.
 */
function lastNeeds(timeline: Timeline): ReadonlyMap<TimelineItem, number> {
  const last = new Map<TimelineItem, number>();
  for (const [call, lines] of neededLines(timeline).entries()) {
    for (const { holders } of lines) {
      const newest = holders.at(-1);
      if (newest !== undefined) last.set(newest, call);
    }
  }
  return last;
}

/** Computes the contexts of a session that is rewritten before a given call. */
class Rewrites {
  readonly #calls: readonly ModelCall[];
  readonly #last: ReadonlyMap<TimelineItem, number>;
  readonly #where: Where;
  readonly #lines = new Map<TimelineItem, RequestPart>();
  /** The number of the first call after each turn. */
  readonly #turnEnds = new Map<number, number>();

  constructor(timeline: Timeline, where: Where) {
    this.#calls = timeline.calls;
    for (const { turn, index } of timeline.calls) this.#turnEnds.set(turn, index + 1);
    this.#last = lastNeeds(timeline);
    this.#where = where;
  }

  /** The calls, except the first, before which the context may be rewritten. */
  get choices(): readonly number[] {
    return this.#calls
      .slice(1)
      .flatMap(({ index, opensTurn }) => (opensTurn || this.#where === 'anywhere' ? [index] : []));
  }

  call(at: number): ModelCall {
    const call = this.#calls[at];
    if (call === undefined) throw new Error(`no call ${at} of ${this.#calls.length}`);
    return call;
  }

  /**
   * Returns an item's text after a rewrite before call `from`, or undefined if it is removed.
   * `from` 0 means no rewrite.
   */
  part(item: TimelineItem, from: number): RequestPart | undefined {
    if (from === 0 || item.position >= this.call(from).visible) return wholePart(item);
    if ((this.#last.get(item) ?? -1) >= from) return wholePart(item);
    if (item.kind === 'result') return undefined;
    if (item.kind === 'thinking')
      return this.#where !== 'anywhere' || item.turn < this.call(from).turn ? undefined : wholePart(item);
    return item.kind === 'call' ? this.#line(item) : wholePart(item);
  }

  /** Returns the first call at which the item may be removed. */
  freeFrom(item: TimelineItem): number {
    const closed = this.#turnEnds.get(item.turn) ?? this.#calls.length;
    return Math.max(closed, (this.#last.get(item) ?? -1) + 1);
  }

  parts(call: ModelCall, from: number): readonly RequestPart[] {
    return itemsOf(call).flatMap((item) => this.part(item, from) ?? []);
  }

  /**
   * Returns the size, in characters, of the prefix that the last request before a rewrite shares
   * with the first request after it.
   */
  same(before: number, from: number): number {
    const [last, first] = [this.call(from - 1), this.call(from)];
    let chars = 0;
    for (let at = 0; at < Math.min(last.visible, first.visible); at += 1) {
      const [old, now] = [last.items[at], first.items[at]];
      if (old === undefined || now !== old) break;
      const [was, is] = [this.part(old, before), this.part(now, from)];
      if (was !== is) break;
      chars += is?.text.length ?? 0;
    }
    return chars;
  }

  size(call: ModelCall, from: number): number {
    let chars = 0;
    for (let at = 0; at < call.visible; at += 1) {
      const item = call.items[at];
      chars += item === undefined ? 0 : (this.part(item, from)?.text.length ?? 0);
    }
    return chars;
  }

  /** Returns the line that replaces the arguments of a call. */
  #line(item: TimelineItem): RequestPart {
    const known = this.#lines.get(item) ?? { text: callLine(item) };
    this.#lines.set(item, known);
    return known;
  }
}

/** The cheapest sequence of rewrites up to a call: its price, and the previous rewrite. */
interface Way {
  readonly cost: number;
  readonly before: number | undefined;
}

/**
 * Returns the cumulative prices of the calls from a rewrite to the end, without another rewrite.
 */
function costsBehind(
  rewrites: Rewrites,
  calls: readonly ModelCall[],
  { from, prices }: { readonly from: number; readonly prices: PriceTable },
) {
  const sums: number[] = [0];
  let size = rewrites.size(rewrites.call(from), from);
  for (let at = from + 1; at < calls.length; at += 1) {
    const [before, call] = [rewrites.call(at - 1), rewrites.call(at)];
    const isFork = call.items !== before.items;
    const added = call.items.slice(before.visible, call.visible).reduce((sum, { text }) => sum + text.length, 0);
    const grown = isFork ? rewrites.size(call, from) : size + added;
    const same = isCold(prices, call, before) ? 0 : Math.min(size, grown);
    sums.push((sums.at(-1) ?? 0) + requestCost(prices, { size: grown, same }));
    size = grown;
  }
  return sums;
}

/** Chooses the rewrites that make the whole session cheapest. */
function cheapestRewrites({ calls }: Timeline, rewrites: Rewrites, prices: PriceTable): readonly number[] {
  const choices = [0, ...rewrites.choices];
  const sizes = choices.map((at) => rewrites.size(rewrites.call(at), at));
  const best = new Map<number, Way>([
    [0, { cost: requestCost(prices, { size: sizes[0] ?? 0, same: 0 }), before: undefined }],
  ]);
  let end: Way = { cost: Number.POSITIVE_INFINITY, before: undefined };
  for (const [i, from] of choices.entries()) {
    const reached = best.get(from)?.cost ?? 0;
    const behind = costsBehind(rewrites, calls, { from, prices });
    const all = reached + (behind.at(-1) ?? 0);
    if (all < end.cost) end = { cost: all, before: from };
    for (const [j, next] of choices.entries()) {
      if (j <= i) continue;
      const same = isCold(prices, rewrites.call(next), rewrites.call(next - 1)) ? 0 : rewrites.same(from, next);
      const cost = reached + (behind[next - 1 - from] ?? 0) + requestCost(prices, { size: sizes[j] ?? 0, same });
      if (cost < (best.get(next)?.cost ?? Number.POSITIVE_INFINITY)) best.set(next, { cost, before: from });
    }
  }
  const chosen: number[] = [];
  for (let at = end.before; at !== undefined; at = best.get(at)?.before) chosen.unshift(at);
  return chosen;
}

/**
 * Returns the rent and the cost of a rewrite, as in the ski-rental problem. The rent is the price
 * of reading removable items since they became removable. The cost is the price of writing all text
 * after the first change.
 */
function rentOf(
  rewrites: Rewrites,
  at: number,
  { from, prices }: { readonly from: number; readonly prices: PriceTable },
) {
  const call = rewrites.call(at);
  let rent = 0;
  let behind = 0;
  let isChanged = false;
  for (const item of itemsOf(call)) {
    const [was, is] = [rewrites.part(item, from), rewrites.part(item, at)];
    if (was !== is) {
      isChanged = true;
      const gone = (was?.text.length ?? 0) - (is?.text.length ?? 0);
      rent += prices.read * gone * Math.max(0, at - rewrites.freeFrom(item));
    }
    if (isChanged) behind += is?.text.length ?? 0;
  }
  return { rent, price: (prices.write - prices.read) * behind };
}

/**
 * Returns the rewrites of a policy that knows future needs but not the length of the session. It
 * rewrites once the accumulated rent exceeds the cost, or when the cache is cold.
 */
function rentedRewrites(rewrites: Rewrites, prices: PriceTable): readonly number[] {
  const chosen = [0];
  for (const at of rewrites.choices) {
    const { rent, price } = rentOf(rewrites, at, { from: chosen.at(-1) ?? 0, prices });
    if (rent > 0 && (rent >= price || isCold(prices, rewrites.call(at), rewrites.call(at - 1)))) chosen.push(at);
  }
  return chosen;
}

const WHERE: Readonly<Record<Where, string>> = {
  'at borders': 'at messages of the user where that makes the session cheapest',
  'at borders by rent':
    'at messages of the user, once the rent of removable items reaches the price of a rewrite or the cache is cold',
  anywhere: 'before any call where that makes the session cheapest, even inside a turn',
};

/**
 * The upper bound for all policies. It keeps exactly those texts of closed turns that a later
 * answer needs, and rewrites the context where that is cheapest. No real policy knows future needs.
 * A policy's distance to this bound is the price of not knowing them.
 */
export function clairvoyant(prices: PriceTable, where: Where): ContextPolicy {
  return {
    name: `clairvoyant, ${where}`,
    family: `clairvoyant, ${where}`,
    kind: 'bound',
    source: 'this laboratory',
    fidelity: 'exact',
    about: `Keeps exactly the results and arguments with a line that will be needed. Rewrites ${WHERE[where]}.`,
    reach: 'none',
    guide: 0,
    unsupported: ({ calls }) =>
      calls.length > MOST_CHOICES && where === 'anywhere'
        ? `more than ${MOST_CHOICES} calls to choose from`
        : undefined,
    *requests(timeline: Timeline): Iterable<PolicyRequest> {
      const rewrites = new Rewrites(timeline, where);
      const chosen =
        where === 'at borders by rent'
          ? rentedRewrites(rewrites, prices)
          : cheapestRewrites(timeline, rewrites, prices);
      for (const call of timeline.calls)
        yield { parts: rewrites.parts(call, chosen.findLast((at) => at <= call.index) ?? 0) };
    },
  };
}
