import { ProjectionError } from './errors.js';
import type { Digest } from './summary.js';

/** What every summary of a view must say, whatever else it says. */
export interface RequiredText {
  /** The tokens of a summary that says nothing else, as it stands in a request. */
  readonly tokens: number;
  /** Whether a text says all of it. */
  isIn(text: string): boolean;
}

/** How large a view may be, and how it gets smaller. */
export interface ViewBudget {
  /** The most tokens that the view has: never passed, whatever the entries hold. */
  readonly tokens: number;
  /** The share of the limit above which the view gets smaller; 1 if left out. */
  readonly trigger?: number;
  /** The share of the limit that it is brought down to then, so that it need not soon get smaller again; 0.75 if left out. */
  readonly target?: number;
  /** How many of the newest results stay in full for as long as the limit allows; 3 if left out. */
  readonly keepResults?: number;
  /** How many turns before the last one stay for as long as the limit allows; 0 if left out. */
  readonly keepTurns?: number;
  /** The most tokens of the summary of what is left out; a tenth of the limit if left out, 0 for none. */
  readonly summary?: number;
  /** Raises the summary as far as the limit allows; where it does not fit, the view is refused. Nothing if left out. */
  readonly required?: RequiredText;
  /** Makes a summary anew that does not say what is required, also where nothing has to get smaller; false if left out. */
  readonly renew?: boolean;
  /** Nothing behind the first call or approval that waits goes, even where the limit itself would be passed; false if left out. */
  readonly keepBehindPending?: boolean;
  /** Summarises what is left out without a model; `digestOf` if left out. */
  readonly digest?: Digest;
}

/** A budget with everything that was left out, in tokens. */
export interface ViewLimits {
  readonly most: number;
  readonly trigger: number;
  readonly target: number;
  readonly keepResults: number;
  readonly keepTurns: number;
  readonly summary: number;
  /** The least tokens of a summary, of `summary`. */
  readonly leastSummary: number;
  /** The size of the view up to which a summary may grow for what users demanded: halfway to the limit, so that the view need not soon get smaller again. */
  readonly roomy: number;
  readonly keepBehindPending: boolean;
}

const TRIGGER = 1;
const TARGET = 0.75;
const KEEP_RESULTS = 3;
const SHARE_OF_SUMMARY = 0.1;

function share(name: string, value: number): number {
  if (value > 0 && value <= 1) return value;
  throw new ProjectionError('invalid-budget', `the ${name} of a view is ${value}: give a share above 0 and up to 1 of its limit`);
}

function whole(name: string, value: number, least: number): number {
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new ProjectionError('invalid-budget', `${name} of a view is ${value}: give a whole number from ${least}`);
}

/**
 * The limits that a budget means.
 * @throws {ProjectionError} `invalid-budget`
 */
export function viewLimits({ tokens, trigger = TRIGGER, target = TARGET, ...rest }: ViewBudget): ViewLimits {
  const most = whole('the limit', tokens, 1);
  const { keepResults = KEEP_RESULTS, keepTurns = 0, summary = Math.floor(most * SHARE_OF_SUMMARY), keepBehindPending = false } = rest;
  const leastSummary = rest.required?.tokens ?? 0;
  const goal = Math.floor(most * share('target', target));
  return {
    most,
    trigger: Math.floor(most * share('trigger', trigger)),
    target: goal,
    keepResults: whole('the number of results kept', keepResults, 0),
    keepTurns: whole('the number of turns kept', keepTurns, 0),
    // What must be said stands beside the rest. A summary whose rest took the whole target would leave nothing to be read after it.
    summary: Math.min(whole('the summary', summary, 0), Math.floor(goal / 2)) + leastSummary,
    leastSummary,
    roomy: Math.floor((goal + most) / 2),
    keepBehindPending,
  };
}
