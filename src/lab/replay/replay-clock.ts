/** The start of a recording without a clock. Its entries are one second apart. */
export const NO_CLOCK_EPOCH = Date.UTC(2000, 0, 1);
const STEP_MS = 1_000;

/**
 * The recording's own clock (decision H6): times in entry order that never decrease. An entry
 * without a time gets that of the previous one. A recording that begins without times counts
 * seconds from the year 2000.
 */
export class ReplayClock {
  /** The repairs made to the clock. */
  readonly repairs = {
    /** Times before the previous one, replaced by it. */
    backwards: 0,
    /** Times in the future or invalid, replaced by the previous one. */
    impossible: 0,
    /** Entries without a time. */
    missing: 0,
  };
  readonly #latest: () => number;
  #now = NO_CLOCK_EPOCH;
  #set = false;
  #before = 0;

  /** `latest` returns the last accepted time: this machine's, because no recording is younger. */
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
