import type { ModelCall } from '../timeline/timeline.js';

/** What a provider takes for the tokens of a request, as multiples of a fresh one's price, and how long its cache lives. */
export interface PriceTable {
  readonly name: string;
  /** For which recorded models it is the own one. */
  readonly models: RegExp;
  /** A token that the cache holds. */
  readonly read: number;
  /** A token that the cache does not hold, with what writing it there costs. */
  readonly write: number;
  /** Idle for longer than this, the cache is gone; milliseconds. */
  readonly lifetimeMs: number;
}

/** The day on which the prices below were read in the providers' own lists. */
export const PRICES_AS_OF = '2026-11-22';

const MINUTE_MS = 60_000;

/** The first table is the one that results are compared under; of the others, the first that knows a model is its own. */
export const PRICE_TABLES: readonly [PriceTable, ...PriceTable[]] = [
  { name: 'Anthropic, 5 minutes', models: /claude/i, read: 0.1, write: 1.25, lifetimeMs: 5 * MINUTE_MS },
  { name: 'Anthropic, 1 hour', models: /$^/, read: 0.1, write: 2, lifetimeMs: 60 * MINUTE_MS },
  { name: 'Anthropic, read 0.05', models: /$^/, read: 0.05, write: 1.25, lifetimeMs: 5 * MINUTE_MS },
  { name: 'OpenAI, read 0.1', models: /gpt-5|codex/i, read: 0.1, write: 1, lifetimeMs: 10 * MINUTE_MS },
  { name: 'OpenAI, read 0.5', models: /gpt-4|o[134]\b/i, read: 0.5, write: 1, lifetimeMs: 10 * MINUTE_MS },
];

/** The table that a recorded model has for its own; the first one where no table knows it. */
export function tableOf(model: string | undefined): PriceTable {
  return PRICE_TABLES.find(({ models }) => model !== undefined && models.test(model)) ?? PRICE_TABLES[0];
}

/** Whether the cache is gone when a call comes. Without a clock in the recording it is taken to live. */
export function isCold({ lifetimeMs }: PriceTable, call: ModelCall, before: ModelCall | undefined): boolean {
  if (before === undefined) return true;
  return call.at !== undefined && before.at !== undefined && call.at - before.at > lifetimeMs;
}

/** The price of a request of which a part stands in the cache, in the unit of its sizes. */
export function requestCost({ read, write }: PriceTable, { size, same }: { readonly size: number; readonly same: number }): number {
  return read * same + write * (size - same);
}
