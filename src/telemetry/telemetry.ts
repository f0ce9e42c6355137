import type { ActivityName } from './activities.js';
import type { Facts } from './facts.js';
import type { GaugeName, MeasureName } from './metrics.js';
import type { TraceContext } from './trace.js';

/** An activity to observe, with the facts that are known when it begins. */
export interface Watched {
  readonly activity: ActivityName;
  readonly facts?: Facts;
  /**
   * The parent of its span. Set if the parent is not the running code: the caller in another
   * process, or a call that another process acknowledged.
   */
  readonly parent?: TraceContext | undefined;
}

/** Adds facts to a running activity. */
export type Tell = (facts: Facts) => void;

/** Current values of gauges. */
export type Gauges = Readonly<Partial<Record<GaugeName, number>>>;

/**
 * Telemetry sink. It never changes the work or its result. It receives names, codes, ids and
 * numbers only: content, paths and access tokens are not facts ({@link Facts}).
 */
export interface Telemetry {
  /** Runs work as an activity. Rethrows its error, whose code becomes `error.type`. */
  observe<T>(watched: Watched, work: (tell: Tell) => Promise<T>): Promise<T>;
  /** Adds to a counter, or records a value in a histogram. */
  add(measure: MeasureName, value: number, facts?: Facts): void;
  /** Registers a function that reads gauges. Returns a function that unregisters it. */
  watch(gauges: () => Gauges): () => void;
}

/** A sink that ignores everything. */
export const NO_TELEMETRY: Telemetry = {
  observe: (_watched, work) => work(() => undefined),
  add: () => undefined,
  watch: () => () => undefined,
};
