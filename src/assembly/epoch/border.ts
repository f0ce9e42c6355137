import type { BorderPrice, BorderReason } from '../../objects/assembly-proof.js';
import type { ModelPrices } from './prices.js';

/** What an epoch has cost so far, and what the next request has with it and without; in tokens. */
export interface EpochLedger {
  /** How many requests the session has had. */
  readonly calls: number;
  /** The next request if the epoch goes on. */
  readonly goesOn: number;
  /** The same request if a new one begins with it. */
  readonly begins: number;
  /** How much of that one is the beginning of the request before. */
  readonly shared: number;
  /** When the last request was made, milliseconds since 1970. */
  readonly lastAt: number;
  /** Whether the request is the first after a message of the user: only there do all turns before it leave together. */
  readonly atUser: boolean;
  /** A verb asked for a new epoch. */
  readonly asked: boolean;
  /** The harness's list does not begin as the one before did, or a model call went out with another one. */
  readonly changed: boolean;
}

/** When epochs end. */
export interface EpochSettings {
  /** How often what is saved must pay for what is written again. */
  readonly theta: number;
  /** As many calls are expected still as this share of those so far, and at least and at most so many. */
  readonly horizon: { readonly share: number; readonly least: number; readonly most: number };
  /** The most tokens that a request is to have. */
  readonly budget: number;
  /** How much of a request, at least, a border under pressure must free: less would not last. */
  readonly relief: number;
}

/** A model's window, in tokens, where nobody tells it. */
const USUAL_WINDOW = 200_000;
/** The rest is for what is not counted here: tools, reasoning, the answer. */
const SHARE_OF_WINDOW = 0.7;

/** The settings for a model's window. */
export const epochSettings = (window: number = USUAL_WINDOW): EpochSettings => ({
  theta: 2,
  horizon: { share: 0.2, least: 10, most: 80 },
  budget: Math.floor(window * SHARE_OF_WINDOW),
  relief: 0.25,
});

/** What decides: the prices of the model, and the moment in milliseconds since 1970. */
export interface BorderTerms {
  readonly prices: ModelPrices;
  readonly settings: EpochSettings;
  readonly now: number;
}

/** A new epoch: why, and what it costs and saves. */
export interface Border {
  readonly reason: BorderReason;
  readonly price: BorderPrice;
}

type Rule = (ledger: EpochLedger, terms: BorderTerms) => boolean;

const saves = ({ goesOn, begins }: EpochLedger): boolean => begins < goesOn;

/** In the order in which one wins over another. */
const RULES: readonly (readonly [BorderReason, Rule])[] = [
  ['history', ({ changed }) => changed],
  ['asked', ({ atUser, asked }) => atUser && asked],
  ['pressure', ({ goesOn, begins }, { settings: { budget, relief } }) => goesOn > budget && begins <= goesOn * (1 - relief)],
  ['cold', (ledger, { prices, now }) => ledger.atUser && saves(ledger) && now - ledger.lastAt > prices.lifetimeMs],
  [
    'saving',
    (ledger, { prices: { read, write }, settings: { theta, horizon } }) => {
      const { atUser, calls, goesOn, begins, shared } = ledger;
      const expected = Math.min(horizon.most, Math.max(horizon.least, horizon.share * calls));
      return atUser && saves(ledger) && read * (goesOn - begins) * expected >= theta * (write - read) * (begins - shared);
    },
  ],
];

/**
 * Whether a request begins a new epoch (divergence E9), and why; undefined where the epoch goes on. A session that has
 * gone on for long is expected to go on for a while: what could go then costs its price of reading at each of those calls, and goes when that is worth writing again what stands behind it.
 */
export function decideBorder(ledger: EpochLedger, terms: BorderTerms): Border | undefined {
  const reason = RULES.find(([, applies]) => applies(ledger, terms))?.[0];
  if (reason === undefined) return undefined;
  const { goesOn, begins, shared } = ledger;
  return { reason, price: { written: Math.max(0, begins - shared), savedPerCall: Math.max(0, goesOn - begins) } };
}
