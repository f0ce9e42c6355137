import { type ModelPrices, TARIFFS } from '../../assembly/epoch/prices.js';
import type { ModelCall } from '../timeline/timeline.js';

/** What a provider takes for the tokens of a request: a tariff of the house's, or one with another price for a token that the cache holds. */
export interface PriceTable extends ModelPrices {
  readonly name: string;
  /** For which recorded models it is the own one. */
  readonly models: RegExp;
}

/** The first table is the one that results are compared under; of the others, the first that knows a model is its own. */
export const PRICE_TABLES: readonly [PriceTable, ...PriceTable[]] = [
  { name: 'Anthropic, 5 minutes', models: /claude/i, ...TARIFFS.anthropic },
  { name: 'Anthropic, 1 hour', models: /$^/, ...TARIFFS.anthropicHour },
  { name: 'Anthropic, read 0.05', models: /$^/, ...TARIFFS.anthropic, read: 0.05 },
  { name: 'OpenAI, read 0.1', models: /gpt-5|codex/i, ...TARIFFS.openai },
  { name: 'OpenAI, read 0.5', models: /gpt-4|o[134]\b/i, ...TARIFFS.openai, read: 0.5 },
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
