import { ProjectionError } from './errors.js';
import type { Digest } from './summary.js';

/** The text that every summary of a view must contain. */
export interface RequiredText {
  /** Tokens that a summary of only this text takes in a request. */
  readonly tokens: number;
  /** Returns whether a text contains all of the required text. */
  isIn(text: string): boolean;
}

/** The size of a view, and the rules for shrinking it. */
export interface ViewBudget {
  /** Maximum tokens of the view. No view exceeds it. */
  readonly tokens: number;
  /** Share of the limit above which the view shrinks. Default: 1. */
  readonly trigger?: number;
  /** Share of the limit to which the view shrinks. Leaves room for later entries. Default: 0.75. */
  readonly target?: number;
  /** Number of newest results that stay in full while the limit allows it. Default: 3. */
  readonly keepResults?: number;
  /** Number of turns before the last one that stay while the limit allows it. Default: 0. */
  readonly keepTurns?: number;
  /**
   * Maximum tokens of the summary of dropped entries. Default: a tenth of the limit. 0 for no
   * summary.
   */
  readonly summary?: number;
  /**
   * Text that the summary must contain. It raises the summary's size as far as the limit allows. If
   * the text does not fit, the view is rejected. Default: none.
   */
  readonly required?: RequiredText;
  /**
   * Rewrites a summary that lacks required text, even if the view need not shrink. Default: false.
   */
  readonly renew?: boolean;
  /**
   * Drops nothing after the first pending call or approval, even if the limit is exceeded. Default:
   * false.
   */
  readonly keepBehindPending?: boolean;
  /** Makes the summary of dropped entries without a model. Default: `digestOf`. */
  readonly digest?: Digest;
}

/** A complete budget in tokens, with all defaults applied. */
export interface ViewLimits {
  readonly most: number;
  readonly trigger: number;
  readonly target: number;
  readonly keepResults: number;
  readonly keepTurns: number;
  readonly summary: number;
  /** The part of the summary that required text takes, in tokens. */
  readonly leastSummary: number;
  /**
   * To keep requirements of users, the summary may grow until the view has this size. It is halfway
   * from target to limit, so that the view need not shrink again soon.
   */
  readonly roomy: number;
  readonly keepBehindPending: boolean;
}

const TRIGGER = 1;
const TARGET = 0.75;
const KEEP_RESULTS = 3;
const SHARE_OF_SUMMARY = 0.1;

function share(name: string, value: number): number {
  if (value > 0 && value <= 1) return value;
  throw new ProjectionError(
    'invalid-budget',
    `the ${name} of a view is ${value}: give a share above 0 and up to 1 of its limit`,
  );
}

function whole(name: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new ProjectionError('invalid-budget', `${name} of a view is ${value}: give a whole number from ${least}`);
}

/**
 * Returns the limits of a budget in tokens.
 *
 * @throws {ProjectionError} `invalid-budget`
 */
export function viewLimits({ tokens, trigger = TRIGGER, target = TARGET, ...rest }: ViewBudget): ViewLimits {
  const most = whole('the limit', tokens, 1);
  const {
    keepResults = KEEP_RESULTS,
    keepTurns = 0,
    summary = Math.floor(most * SHARE_OF_SUMMARY),
    keepBehindPending = false,
  } = rest;
  const leastSummary = rest.required?.tokens ?? 0;
  const goal = Math.floor(most * share('target', target));
  return {
    most,
    trigger: Math.floor(most * share('trigger', trigger)),
    target: goal,
    keepResults: whole('the number of results kept', keepResults, 0),
    keepTurns: whole('the number of turns kept', keepTurns, 0),
    // Required text is added to the summary's own size, which is at most half the target. A larger
    // summary would leave no room for later entries.
    summary: Math.min(whole('the summary', summary, 0), Math.floor(goal / 2)) + leastSummary,
    leastSummary,
    roomy: Math.floor((goal + most) / 2),
    keepBehindPending,
  };
}
