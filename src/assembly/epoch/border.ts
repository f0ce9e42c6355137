import type { BorderPrice, BorderReason } from '../../objects/assembly-proof.js';
import type { ModelPrices } from './prices.js';

/** The state of an epoch, and the next request's tokens with and without a border. */
export interface EpochLedger {
  /** Number of requests in the session so far. */
  readonly calls: number;
  /** Tokens of the next request if the epoch continues. */
  readonly goesOn: number;
  /** Tokens of that request if a new epoch begins with it. */
  readonly begins: number;
  /** Tokens at the beginning of the new epoch's request that the previous request shares. */
  readonly shared: number;
  /** Time of the last request, milliseconds since 1970. */
  readonly lastAt: number;
  /**
   * Whether the request is the first after a message of the user. Only there can all earlier turns
   * leave the request together.
   */
  readonly atUser: boolean;
  /** Whether the agent or its harness asked for a new epoch. */
  readonly asked: boolean;
  /**
   * Whether the harness's list no longer begins as in the last request, or a model call used
   * another list.
   */
  readonly changed: boolean;
}

/** Settings that decide when an epoch ends. */
export interface EpochSettings {
  /**
   * Number of calls within which a border must pay for itself. The number is a share of the calls
   * so far, within a minimum and a maximum: long sessions tend to continue.
   */
  readonly horizon: { readonly share: number; readonly least: number; readonly most: number };
  /**
   * Minimum share of the request that a border must free. A smaller share does not justify the loss
   * of information.
   */
  readonly leastSaving: number;
  /** Maximum tokens of a request. */
  readonly budget: number;
  /** Share of the request that a border under pressure must free. A smaller gain would not last. */
  readonly relief: number;
}

/** Default window of a model, in tokens. */
const USUAL_WINDOW = 200_000;
/**
 * Share of a window for the request. The rest is for uncounted tokens: tools, reasoning, the
 * answer.
 */
const SHARE_OF_WINDOW = 0.7;

/**
 * Returns the settings for a model's window. They were chosen by cross-validation on the sessions
 * of docs/experiments/2026-11-28-laboratory.md.
 */
export const epochSettings = (window: number = USUAL_WINDOW): EpochSettings => ({
  horizon: { share: 0.15, least: 5, most: 20 },
  leastSaving: 0.05,
  budget: Math.floor(window * SHARE_OF_WINDOW),
  relief: 0.25,
});

/** Input of the decision: the model's prices, and the time in milliseconds since 1970. */
export interface BorderTerms {
  readonly prices: ModelPrices;
  readonly settings: EpochSettings;
  readonly now: number;
}

/** A new epoch: its reason, cost and savings. */
export interface Border {
  readonly reason: BorderReason;
  readonly price: BorderPrice;
}

type Rule = (ledger: EpochLedger, terms: BorderTerms) => boolean;

const frees = ({ goesOn, begins }: EpochLedger, share: number): boolean => begins < goesOn * (1 - share);

/** The rules for a border, in order of priority. */
const RULES: readonly (readonly [BorderReason, Rule])[] = [
  ['history', ({ changed }) => changed],
  ['asked', ({ atUser, asked }) => atUser && asked],
  ['pressure', (ledger, { settings }) => ledger.goesOn > settings.budget && frees(ledger, settings.relief)],
  [
    'cold',
    (ledger, { prices, settings, now }) =>
      ledger.atUser && now - ledger.lastAt > prices.lifetimeMs && frees(ledger, settings.leastSaving),
  ],
  [
    'saving',
    (ledger, { prices: { read, write }, settings: { horizon, leastSaving } }) => {
      const { atUser, calls, goesOn, begins, shared } = ledger;
      const expected = Math.min(horizon.most, Math.max(horizon.least, horizon.share * calls));
      return (
        atUser &&
        frees(ledger, leastSaving) &&
        read * (goesOn - begins) * expected >= (write - read) * (begins - shared)
      );
    },
  ],
];

/**
 * Decides whether a request begins a new epoch (divergence E9), and why; undefined if the epoch
 * continues. At a message of the user, a border pays if the savings of the expected calls exceed
 * the cost of rewriting. With a cold cache everything is rewritten anyway.
 */
export function decideBorder(ledger: EpochLedger, terms: BorderTerms): Border | undefined {
  const reason = RULES.find(([, applies]) => applies(ledger, terms))?.[0];
  if (reason === undefined) return undefined;
  const { goesOn, begins, shared } = ledger;
  return { reason, price: { written: Math.max(0, begins - shared), savedPerCall: Math.max(0, goesOn - begins) } };
}
