/** The start time for a recording without times. Its entries are one second apart. */
export const NO_CLOCK_EPOCH = Date.UTC(2000, 0, 1);
const STEP_MS = 1_000;

/**
 * The recording's clock (decision H6). Times follow the order of entries and never decrease. An
 * entry without a time gets the previous time. Before the first time, entries count seconds from
 * the year 2000.
 */
export class ReplayClock {
  /** Number of corrected times, by reason. */
  readonly repairs = {
    /** Number of times before the previous time, which is used instead. */
    backwards: 0,
    /** Number of invalid times, and of times in the future. The previous time is used instead. */
    impossible: 0,
    /** Number of entries without a time. */
    missing: 0,
  };
  readonly #latest: () => number;
  #now = NO_CLOCK_EPOCH;
  #set = false;
  #before = 0;

  /**
   * `latest` returns the current time of this machine. Recorded times after it count as impossible.
   */
  constructor(latest: () => number) {
    this.#latest = latest;
  }

  /** Milliseconds since 1970. */
  get now(): number {
    return this.#now;
  }

  /** Advances to an entry's time. */
  advance(at: number | undefined): void {
    if (at === undefined) {
      this.repairs.missing += 1;
      if (!this.#set) this.#now += STEP_MS;
      return;
    }
    const moment = Math.floor(at);
    if (!(moment >= 1) || moment > this.#latest()) {
      this.repairs.impossible += 1;
      return;
    }
    if (this.#set && moment < this.#before) this.repairs.backwards += 1;
    this.#before = moment;
    this.#now = this.#set ? Math.max(this.#now, moment) : Math.max(moment, 1);
    this.#set = true;
  }
}
