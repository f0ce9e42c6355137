import { type ModelPrices, TARIFFS } from '../../assembly/epoch/prices.js';
import type { ModelCall } from '../timeline/timeline.js';

/**
 * Prices of a request's tokens: a provider's own prices, or a variant with another price for cached
 * tokens.
 */
export interface PriceTable extends ModelPrices {
  readonly name: string;
  /** Matches the recorded models that have these prices. */
  readonly models: RegExp;
  /** The price of a token of an answer. */
  readonly output: number;
}

/**
 * All price tables. Comparisons use the first table. A model's own table is the first of the other
 * tables whose pattern matches its name.
 */
export const PRICE_TABLES: readonly [PriceTable, ...PriceTable[]] = [
  { name: 'Anthropic, 5 minutes', models: /claude/i, output: 5, ...TARIFFS.anthropic },
  { name: 'Anthropic, 1 hour', models: /$^/, output: 5, ...TARIFFS.anthropicHour },
  { name: 'Anthropic, read 0.05', models: /$^/, output: 5, ...TARIFFS.anthropic, read: 0.05 },
  { name: 'OpenAI, read 0.1', models: /gpt-5|codex/i, output: 6, ...TARIFFS.openai },
  { name: 'OpenAI, read 0.5', models: /gpt-4|o[134]\b/i, output: 4, ...TARIFFS.openai, read: 0.5 },
];

/** Returns a model's own table, or the first table if none matches. */
export function tableOf(model: string | undefined): PriceTable {
  return PRICE_TABLES.find(({ models }) => model !== undefined && models.test(model)) ?? PRICE_TABLES[0];
}

/**
 * Returns true if the cache has expired by the time of a call. In a recording without times, the
 * cache never expires.
 */
export function isCold({ lifetimeMs }: PriceTable, call: ModelCall, before: ModelCall | undefined): boolean {
  if (before === undefined) return true;
  return call.at !== undefined && before.at !== undefined && call.at - before.at > lifetimeMs;
}

/**
 * Returns the price of a partly cached request. All sizes are in characters or all are in tokens,
 * and the price is in the same unit.
 */
export function requestCost(
  { read, write }: PriceTable,
  { size, same }: { readonly size: number; readonly same: number },
): number {
  return read * same + write * (size - same);
}
