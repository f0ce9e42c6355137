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
  /** In how many calls a border must pay for itself: a share of those so far, since a session that has lasted long goes on for long; at least and at most so many. */
  readonly horizon: { readonly share: number; readonly least: number; readonly most: number };
  /** The least share of the request that a border must free; less is not worth what it forgets. */
  readonly leastSaving: number;
  /** The most tokens that a request is to have. */
  readonly budget: number;
  /** The share of the request that a border under pressure must free: less would not last. */
  readonly relief: number;
}

/** A model's window, in tokens, where nobody tells it. */
const USUAL_WINDOW = 200_000;
/** The rest is for what is not counted here: tools, reasoning, the answer. */
const SHARE_OF_WINDOW = 0.7;

/** The settings for a model's window; chosen by cross-validation over recorded sessions, and nearly flat around these values. */
export const epochSettings = (window: number = USUAL_WINDOW): EpochSettings => ({
  horizon: { share: 0.15, least: 5, most: 20 },
  leastSaving: 0.05,
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

const frees = ({ goesOn, begins }: EpochLedger, share: number): boolean => begins < goesOn * (1 - share);

/** In the order in which one wins over another. */
const RULES: readonly (readonly [BorderReason, Rule])[] = [
  ['history', ({ changed }) => changed],
  ['asked', ({ atUser, asked }) => atUser && asked],
  ['pressure', (ledger, { settings }) => ledger.goesOn > settings.budget && frees(ledger, settings.relief)],
  [
    'cold',
    (ledger, { prices, settings, now }) => ledger.atUser && now - ledger.lastAt > prices.lifetimeMs && frees(ledger, settings.leastSaving),
  ],
  [
    'saving',
    (ledger, { prices: { read, write }, settings: { horizon, leastSaving } }) => {
      const { atUser, calls, goesOn, begins, shared } = ledger;
      const expected = Math.min(horizon.most, Math.max(horizon.least, horizon.share * calls));
      return atUser && frees(ledger, leastSaving) && read * (goesOn - begins) * expected >= (write - read) * (begins - shared);
    },
  ],
];

/**
 * Whether a request begins a new epoch (divergence E9), and why; undefined where the epoch goes on. At a
 * message of the user it is worth it when what each request saves pays, within the calls that are expected still, for what is written again; with a cold cache everything is
 * written anyway.
 */
export function decideBorder(ledger: EpochLedger, terms: BorderTerms): Border | undefined {
  const reason = RULES.find(([, applies]) => applies(ledger, terms))?.[0];
  if (reason === undefined) return undefined;
  const { goesOn, begins, shared } = ledger;
  return { reason, price: { written: Math.max(0, begins - shared), savedPerCall: Math.max(0, goesOn - begins) } };
}
