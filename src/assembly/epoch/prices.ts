/**
 * A provider's prices per token of a request, relative to a fresh token, and the lifetime of its
 * cache.
 */
export interface ModelPrices {
  /** Price of a token read from the cache. */
  readonly read: number;
  /** Price of a token written to the cache. */
  readonly write: number;
  /** Time after its last use during which a cached prefix can be read, milliseconds. */
  readonly lifetimeMs: number;
}

interface PriceRow extends ModelPrices {
  /** Prefix of its models' names; the first matching row counts. */
  readonly models: RegExp;
}

const MINUTES = 60_000;

/** The date of the prices below, from the providers' own pages. */
export const PRICES_AS_OF = '2026-11-22';

/**
 * The tariffs of providers. If a provider promises a range of lifetimes, the upper limit counts:
 * after it the cache is certainly gone.
 */
export const TARIFFS = {
  anthropic: { read: 0.1, write: 1.25, lifetimeMs: 5 * MINUTES },
  anthropicHour: { read: 0.1, write: 2, lifetimeMs: 60 * MINUTES },
  openai: { read: 0.1, write: 1, lifetimeMs: 10 * MINUTES },
  gemini: { read: 0.25, write: 1, lifetimeMs: 5 * MINUTES },
} as const satisfies Readonly<Record<string, ModelPrices>>;

const ROWS: readonly PriceRow[] = [
  { models: /^(?:.*\/)?(?:gpt|o\d|codex|chatgpt)/i, ...TARIFFS.openai },
  { models: /^(?:.*\/)?gemini/i, ...TARIFFS.gemini },
  { models: /:1h$/i, ...TARIFFS.anthropicHour },
];

/**
 * Returns the prices of a model by its name; `:1h` after the name means that its cache marks live
 * for an hour. Only the ratios of the prices matter. Unlisted models count as Claude with marks of
 * five minutes, the second most expensive cache to lose.
 */
export function pricesOf(model = ''): ModelPrices {
  return ROWS.find(({ models }) => models.test(model)) ?? TARIFFS.anthropic;
}

/** Cache writes of a call, and the part of them that lives for an hour. */
interface CacheWrites {
  readonly cacheWrite?: number;
  readonly cacheWriteHour?: number;
}

/**
 * Returns whether the cached prefix after a call lives for an hour. A call that wrote nothing
 * leaves that as it was.
 */
export const isHourCache = ({ cacheWrite = 0, cacheWriteHour = 0 }: CacheWrites, before = false): boolean =>
  cacheWrite === 0 ? before : cacheWriteHour >= cacheWrite;

/** Returns the lifetime of a model's cached prefix in milliseconds. */
export const cacheLifetimeMs = (model: string, isHour: boolean): number =>
  isHour ? TARIFFS.anthropicHour.lifetimeMs : pricesOf(model).lifetimeMs;

/**
 * Returns whether a pause explains lost tokens: it was longer than the cache's lifetime, and most
 * of the prefix is lost. If the provider still read most of it, the cache had not ended.
 */
export const pauseEndsCache = (
  pausedMs: number,
  { lifetimeMs, lost, read }: { readonly lifetimeMs: number; readonly lost: number; readonly read: number },
): boolean => pausedMs > lifetimeMs && lost > read;
