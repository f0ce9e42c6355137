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

/** The day on which the prices below stood on the providers' own pages. */
export const PRICES_AS_OF = '2026-11-22';

/** The tariffs of providers. Where one promises a lifetime from one length to another, the longer one stands here: behind it the cache is gone for sure. */
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
 * The prices of a model by its name; `:1h` behind the name says that its marks are kept for an hour. Only their ratios decide. Models that are not listed count
 * as Claude with marks of five minutes, which is the dearest cache to lose but one.
 */
export function pricesOf(model = ''): ModelPrices {
  return ROWS.find(({ models }) => models.test(model)) ?? TARIFFS.anthropic;
}
