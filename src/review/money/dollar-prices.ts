import { type ModelPrices, TARIFFS } from '../../assembly/epoch/prices.js';

/** A model's list prices in US dollars for a million tokens. */
interface DollarPrices {
  readonly input: number;
  readonly output: number;
  /** The price of a cache read as a share of `input`. */
  readonly read: number;
  readonly write: number;
}

/** The tokens of a model call. */
export interface CallTokens {
  /** Prompt tokens that were neither read from the cache nor written to it. */
  readonly fresh: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `cacheWrite` that lives for an hour. The rest lives for five minutes. */
  readonly cacheWriteHour?: number | undefined;
  readonly output: number;
}

/** The day on which the prices below were collected, from price lists of third parties. */
export const DOLLAR_PRICES_AS_OF = '2026-10-24';

interface PriceRow extends DollarPrices {
  readonly models: RegExp;
  /** The prices hold for calls before this time. */
  readonly before?: number;
}

/** Cache prices that differ from the provider's usual ones, and the end of a price. */
type Exceptions = Partial<Pick<PriceRow, 'read' | 'write' | 'before'>>;

const priced =
  ({ read, write }: Pick<ModelPrices, 'read' | 'write'>) =>
  (models: RegExp, [input, output]: readonly [number, number], exceptions: Exceptions = {}): PriceRow => ({
    models,
    input,
    output,
    read,
    write,
    ...exceptions,
  });

const claude = priced(TARIFFS.anthropic);
const openai = priced(TARIFFS.openai);
/** For models since Gemini 2.5, cache reads cost less than for earlier models. */
const gemini = priced({ ...TARIFFS.gemini, read: 0.1 });

/** The first row that matches a model's name counts. */
const ROWS: readonly PriceRow[] = [
  claude(/fable-5[.-]1|mythos-5[.-]1/, [10, 50], { read: 0.025 }),
  claude(/fable-5|mythos-5/, [10, 50]),
  claude(/opus-5[.-]5/, [4, 20], { read: 0.05 }),
  claude(/opus-(?:4[.-][5-9]|5)/, [5, 25]),
  claude(/opus|claude-3-opus/, [15, 75]),
  claude(/sonnet-5[.-]5/, [2, 10], { before: Date.UTC(2026, 9, 7) }),
  claude(/sonnet-5[.-]5/, [2, 10], { read: 0.05 }),
  claude(/sonnet-5/, [2, 10]),
  claude(/sonnet/, [3, 15]),
  claude(/haiku-5[.-]5/, [0.1, 0.5]),
  claude(/3[.-]5-haiku|haiku-3[.-]5/, [0.8, 4]),
  claude(/3-haiku|haiku-3/, [0.25, 1.25]),
  claude(/haiku/, [1, 5]),
  openai(/gpt-6\.1-sol/, [2, 10], { read: 0.05, write: 1.25 }),
  openai(/gpt-5\.5-pro|gpt-5\.4-pro/, [30, 180], { read: 1 }),
  openai(/gpt-5\.5/, [5, 30]),
  openai(/gpt-5\.4-mini/, [0.75, 4.5]),
  openai(/gpt-5\.4-nano/, [0.2, 1.25]),
  openai(/gpt-5\.4/, [2.5, 15]),
  openai(/gpt-5\.[23]/, [1.75, 14]),
  openai(/gpt-5(?:\.1)?-codex-mini|gpt-5(?:\.1)?-mini/, [0.25, 2]),
  openai(/gpt-5-nano/, [0.05, 0.4]),
  openai(/gpt-5(?:\.1)?(?![.\d])/, [1.25, 10]),
  openai(/gpt-4\.1-mini/, [0.4, 1.6], { read: 0.25 }),
  openai(/gpt-4\.1/, [2, 8], { read: 0.25 }),
  openai(/gpt-4o-mini/, [0.15, 0.6], { read: 0.5 }),
  openai(/gpt-4o/, [2.5, 10], { read: 0.5 }),
  openai(/codex-mini/, [1.5, 6], { read: 0.25 }),
  openai(/o4-mini|o3-mini/, [1.1, 4.4], { read: 0.25 }),
  openai(/\bo3\b/, [2, 8], { read: 0.25 }),
  gemini(/gemini-3(?:\.\d)?-pro/, [2, 12]),
  gemini(/gemini-3(?:\.\d)?-flash/, [0.5, 3]),
  gemini(/gemini-2\.5-pro/, [1.25, 10]),
  gemini(/gemini-2\.5-flash-lite/, [0.1, 0.4]),
  gemini(/gemini-2\.5-flash/, [0.3, 2.5]),
];

/** Returns a model's list prices at a time. Undefined for an unlisted model. */
export function dollarPricesOf(model: string, at: number | null): DollarPrices | undefined {
  const name = model.toLowerCase();
  return ROWS.find(({ models, before }) => models.test(name) && (before === undefined || (at ?? Infinity) < before));
}

/** The price of a token that is written to a cache of one hour, as a multiple of `input`. */
export const HOUR_WRITE = TARIFFS.anthropicHour.write;

/** Returns how many fresh tokens cost as much as some cache writes. */
export const writesAsFresh = (
  { write }: Pick<DollarPrices, 'write'>,
  { cacheWrite, cacheWriteHour: hour = 0 }: Pick<CallTokens, 'cacheWrite' | 'cacheWriteHour'>,
): number => (cacheWrite - hour) * write + hour * HOUR_WRITE;

/**
 * Returns the list price of a model call in US dollars. Undefined for an unlisted model. Long
 * prompts have no surcharge.
 */
export function dollarsOf(model: string, call: CallTokens & { readonly at: number | null }): number | undefined {
  const prices = dollarPricesOf(model, call.at);
  if (prices === undefined) return undefined;
  const { input, output, read } = prices;
  const prompt = call.fresh + call.cacheRead * read + writesAsFresh(prices, call);
  return (prompt * input + call.output * output) / 1e6;
}
