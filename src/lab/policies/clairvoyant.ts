import { isCold, type PriceTable, requestCost } from '../prices/price-table.js';
import { neededLines } from '../timeline/needed-lines.js';
import type { ModelCall, Timeline, TimelineItem } from '../timeline/timeline.js';
import { type ContextPolicy, itemsOf, type PolicyRequest, type RequestPart, wholePart } from './policy.js';

/** Where a clairvoyant may write the context anew: at messages of the user, there by the rule of ski rental alone, or before any call. */
type Where = 'at borders' | 'at borders by rent' | 'anywhere';

/** More calls would take too long to choose from. */
const MOST_CHOICES = 1_000;

/** The last call that needs each result, found with the newest holder of every needed line. */
function lastNeeds(timeline: Timeline): ReadonlyMap<TimelineItem, number> {
  const last = new Map<TimelineItem, number>();
  const needs = neededLines(timeline).byCall;
  for (const [call, lines] of needs.entries()) {
    for (const { holders } of lines) {
      const newest = holders.at(-1);
      if (newest !== undefined) last.set(newest, call);
    }
  }
  return last;
}

/** The contexts of one session as they are after writing them anew before some call. */
class Rewrites {
  readonly #calls: readonly ModelCall[];
  readonly #last: ReadonlyMap<TimelineItem, number>;
  readonly #where: Where;
  readonly #lines = new Map<TimelineItem, RequestPart>();
  /** The first call behind each turn. */
  readonly #turnEnds = new Map<number, number>();

  constructor(timeline: Timeline, where: Where) {
    this.#calls = timeline.calls;
    for (const { turn, index } of timeline.calls) this.#turnEnds.set(turn, index + 1);
    this.#last = lastNeeds(timeline);
    this.#where = where;
  }

  /** The calls, behind the first one, before which the context may be written anew. */
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

  /** What stands for an item since the context was written anew before call `from`; undefined for nothing, `from` 0 for a context that never was. */
  part(item: TimelineItem, from: number): RequestPart | undefined {
    if (from === 0 || item.position >= this.call(from).visible) return wholePart(item);
    if (item.kind === 'result') return (this.#last.get(item) ?? -1) >= from ? wholePart(item) : undefined;
    if (item.kind === 'thinking')
      return this.#where !== 'anywhere' || item.turn < this.call(from).turn ? undefined : wholePart(item);
    return item.kind === 'call' ? this.#line(item) : wholePart(item);
  }

  /** The first call that could do without an item. */
  freeFrom(item: TimelineItem): number {
    const closed = this.#turnEnds.get(item.turn) ?? this.#calls.length;
    return item.kind === 'result' ? Math.max(closed, (this.#last.get(item) ?? -1) + 1) : closed;
  }

  parts(call: ModelCall, from: number): readonly RequestPart[] {
    return itemsOf(call).flatMap((item) => this.part(item, from) ?? []);
  }

  /** How much of the last request since one rewrite stands at the beginning of the first one since the next; characters. */
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

  /** A call without its arguments and its result. */
  #line(item: TimelineItem): RequestPart {
    const known = this.#lines.get(item) ?? { text: `[${item.tool ?? ''} ${item.index}]` };
    this.#lines.set(item, known);
    return known;
  }
}

/** The best way to come to a place: its price so far, and the rewrite before it. */
interface Way {
  readonly cost: number;
  readonly before: number | undefined;
}

/** The prices of the calls behind a rewrite up to the end, added up, as long as nothing is written anew. */
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

/** The calls before which the context is written anew, chosen so that the whole session costs least. */
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
 * What a rewrite before a call would save and cost by ski rental: the rent of what could go, for every call since it could, against the price of writing again
 * what stays behind the first change.
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

/** The rewrites of one who knows what will be needed and not how long the session is: as soon as the rent has paid for one, or the cache is cold. */
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
    'at messages of the user as soon as the rent of what can go has paid for it, or the cache is cold',
  anywhere: 'before any call where that makes the session cheapest, which breaks the prefix check',
};

/**
 * The bound: keeps of what closed turns showed exactly the results that a later answer needs a line of, and writes the context anew where that makes the whole
 * session cheapest. No policy knows what will be needed; what is above it is the price of not knowing.
 */
export function clairvoyant(prices: PriceTable, where: Where): ContextPolicy {
  return {
    name: `clairvoyant, ${where}`,
    family: 'bound',
    about: `Keeps exactly the results of which a line will be needed, and is written anew ${WHERE[where]}.`,
    reach: 'none',
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
