/** What a model's provider asks for a token of a request, a fresh one being 1, and how long it keeps what was written. */
export interface ModelPrices {
  /** A token that is read from the cache. */
  readonly read: number;
  /** A token that is written into the cache. */
  readonly write: number;
  /** How long after its last use a cached beginning can be read, milliseconds. */
  readonly lifetimeMs: number;
}

interface PriceRow extends ModelPrices {
  /** How the names of its models begin; the first row that fits counts. */
  readonly models: RegExp;
}

const MINUTES = 60_000;

/**
 * Prices as the providers' pages had them on the date; only their ratios decide, so that a new tariff is one line. Models that are not listed count as Claude
 * with marks of five minutes, which is the dearest cache to lose but one.
 */
export const PRICES: { readonly date: string; readonly rows: readonly PriceRow[] } = {
  date: '2026-11-22',
  rows: [
    { models: /^(?:.*\/)?(?:gpt|o\d|codex|chatgpt)/i, read: 0.1, write: 1, lifetimeMs: 5 * MINUTES },
    { models: /^(?:.*\/)?gemini/i, read: 0.25, write: 1, lifetimeMs: 5 * MINUTES },
    { models: /:1h$/i, read: 0.1, write: 2, lifetimeMs: 60 * MINUTES },
    { models: /^/, read: 0.1, write: 1.25, lifetimeMs: 5 * MINUTES },
  ],
};

const USUAL: ModelPrices = { read: 0.1, write: 1.25, lifetimeMs: 5 * MINUTES };

/** The prices of a model by its name; `:1h` behind the name says that its marks are kept for an hour. */
export function pricesOf(model = ''): ModelPrices {
  return PRICES.rows.find(({ models }) => models.test(model)) ?? USUAL;
}
