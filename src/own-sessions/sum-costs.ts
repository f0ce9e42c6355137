import { localDay } from '../cli/shown-values.js';
import { dollarPricesOf, writesAsFresh } from '../review/money/dollar-prices.js';
import { AGENT_NAMES } from './agent-homes.js';
import { addAnswer, nothingSpent, type Spent } from './counted-tokens.js';
import { type FoundSession, lastUse } from './find-sessions.js';
import { CACHE_LOSSES, type CacheLoss } from './session-facts.js';

/** The ways to group costs. */
export const COST_KEYS = ['day', 'agent', 'model', 'project'] as const;
export type CostKey = (typeof COST_KEYS)[number];

/** The costs of the model calls of one day, agent, model or project. */
export interface CostRow extends Spent {
  readonly key: string;
  /** Number of sessions with at least one of these calls. */
  readonly sessions: number;
}

/** Tokens that had been in the provider's cache and were processed again, for one reason. */
export interface LostCache {
  readonly reason: CacheLoss;
  readonly calls: number;
  readonly tokens: number;
  /** Extra price of processing them again instead of reading the cache, where prices are known. */
  readonly dollars: number;
  /** Number of calls to models without a known price. */
  readonly unpriced: number;
}

/** The costs of sessions. */
export interface Costs {
  readonly rows: readonly CostRow[];
  readonly total: CostRow;
  readonly lost: readonly LostCache[];
  /** Number of calls by model, for models without a known price. */
  readonly unpriced: ReadonlyMap<string, number>;
  /** Number of calls that were left out because another recording has the same call. */
  readonly repeated: number;
  /** Number of calls that were left out because their recording has no token counts for them. */
  readonly uncounted: number;
}

/** Selects calls and groups them. */
export interface CostOptions {
  readonly by: CostKey;
  /** Milliseconds since 1970. */
  readonly since?: number | undefined;
}

/** Returns the time of a call. Without a recorded time, it is the session's last use. */
const timeOf = (at: number | null, session: FoundSession): number => at ?? lastUse(session);

/** Adds up costs by key. */
class Rows {
  readonly #rows = new Map<string, { readonly spent: Spent; readonly sessions: Set<FoundSession> }>();

  of(key: string, session: FoundSession): Spent {
    const row = this.#rows.get(key) ?? { spent: nothingSpent(), sessions: new Set() };
    this.#rows.set(key, row);
    row.sessions.add(session);
    return row.spent;
  }

  get all(): readonly CostRow[] {
    return [...this.#rows].map(([key, { spent, sessions }]) => ({ key, sessions: sessions.size, ...spent }));
  }
}

const NAMES: Readonly<Record<CostKey, (session: FoundSession, call: { at: number; model: string }) => string>> = {
  day: (_session, { at }) => localDay(new Date(at)),
  agent: ({ agent }) => AGENT_NAMES[agent],
  model: (_session, { model }) => (model === '' ? 'unknown model' : model),
  project: ({ folder }) => folder ?? 'unknown folder',
};

/**
 * Adds up what sessions cost. Forks and resumed sessions repeat calls of other recordings. Calls
 * with the same time and tokens are the same call and count once.
 */
export function sumCosts(sessions: readonly FoundSession[], { by, since }: CostOptions): Costs {
  const rows = new Rows();
  const totals = new Rows();
  const unpriced = new Map<string, number>();
  const seen = new Set<string>();
  const lost = new Map<CacheLoss, { calls: number; tokens: number; dollars: number; unpriced: number }>();
  let repeated = 0;
  let uncounted = 0;
  // The oldest recording with a call made the call, so older recordings come first.
  const inOrder = [...sessions].sort((a, b) => (a.startedAt ?? 0) - (b.startedAt ?? 0));
  for (const session of inOrder) {
    const { answers, models, cacheLosses } = session;
    if (since === undefined || lastUse(session) >= since) uncounted += session.uncounted;
    for (const answer of answers) {
      const [at, nth, ...tokens] = answer;
      const model = models[nth] ?? '';
      if (since !== undefined && timeOf(at, session) < since) continue;
      const same = `${at} ${tokens.slice(0, 4).join(' ')}`;
      if (at !== null && seen.has(same)) {
        repeated += 1;
        continue;
      }
      seen.add(same);
      const total = totals.of('total', session);
      const before = total.unpriced;
      addAnswer(total, answer, model);
      if (total.unpriced > before) unpriced.set(model, (unpriced.get(model) ?? 0) + 1);
      addAnswer(rows.of(NAMES[by](session, { at: timeOf(at, session), model }), session), answer, model);
    }
    for (const [at, nth, reason, tokens, hour] of cacheLosses) {
      if (since !== undefined && timeOf(at, session) < since) continue;
      const name = CACHE_LOSSES[reason] ?? 'other';
      const key = `lost ${at} ${tokens}`;
      if (at !== null && seen.has(key)) continue;
      seen.add(key);
      const sum = lost.get(name) ?? { calls: 0, tokens: 0, dollars: 0, unpriced: 0 };
      lost.set(name, sum);
      const prices = dollarPricesOf(models[nth] ?? '', at);
      sum.calls += 1;
      sum.tokens += tokens;
      if (prices === undefined) sum.unpriced += 1;
      else {
        const again = writesAsFresh(prices, { cacheWrite: tokens, cacheWriteHour: hour });
        sum.dollars += (prices.input * (again - tokens * prices.read)) / 1e6;
      }
    }
  }
  const [total = { key: 'total', sessions: 0, ...nothingSpent() }] = totals.all;
  const order = (a: CostRow, b: CostRow): number =>
    by === 'day' ? a.key.localeCompare(b.key) : b.dollars - a.dollars || b.calls - a.calls;
  return {
    rows: [...rows.all].sort(order),
    total,
    lost: [...lost]
      .map(([reason, sum]) => ({ reason, ...sum }))
      .sort((a, b) => b.dollars - a.dollars || b.tokens - a.tokens),
    unpriced,
    repeated,
    uncounted,
  };
}
