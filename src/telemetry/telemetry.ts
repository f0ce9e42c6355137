import type { ActivityName } from './activities.js';
import type { Facts } from './facts.js';
import type { GaugeName, MeasureName } from './metrics.js';
import type { TraceContext } from './trace.js';

/** A piece of work that is watched, and what is known of it when it begins. */
export interface Watched {
  readonly activity: ActivityName;
  readonly facts?: Facts;
  /** What it belongs to where that is not the running code: the caller in another process, the call that another process acknowledged. */
  readonly parent?: TraceContext | undefined;
}

/** Adds what is known of a piece of work by now. */
export type Tell = (facts: Facts) => void;

/** The present values of gauges. */
export type Gauges = Readonly<Partial<Record<GaugeName, number>>>;

/**
 * Whom a process tells what it does. It never changes what is done or how it ends, and is told names, codes, ids and numbers alone: no content, no path and
 * no token is a fact ({@link Facts}).
 */
export interface Telemetry {
  /** Runs work as an activity; what it throws is thrown on, and its code becomes `error.type`. */
  observe<T>(watched: Watched, work: (tell: Tell) => Promise<T>): Promise<T>;
  /** Adds to a counter, or puts a value into a histogram. */
  add(measure: MeasureName, value: number, facts?: Facts): void;
  /** Reads gauges from here whenever they are asked for; the function that it returns ends that. */
  watch(gauges: () => Gauges): () => void;
}

/** Tells nobody anything. */
export const NO_TELEMETRY: Telemetry = {
  observe: (_watched, work) => work(() => undefined),
  add: () => undefined,
  watch: () => () => undefined,
};
