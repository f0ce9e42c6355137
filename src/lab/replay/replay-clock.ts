/** Where a recording without any clock begins; its entries follow one another by a second. */
export const NO_CLOCK_EPOCH = Date.UTC(2000, 0, 1);
const STEP_MS = 1_000;

/**
 * The recording's own clock (decision H6): its moments in the order of its entries, never falling. Entries without a moment have that of the entry before; a
 * recording that begins without any counts seconds from the year 2000.
 */
export class ReplayClock {
  /** How it was mended. */
  readonly repairs = {
    /** Moments before the one in front of them, taken as that. */
    backwards: 0,
    /** Moments that this machine has not reached, or that no clock shows, taken as the one in front of them. */
    impossible: 0,
    /** Entries without a moment. */
    missing: 0,
  };
  readonly #latest: number;
  #now = NO_CLOCK_EPOCH;
  #set = false;
  #before = 0;

  /** `latest` is the last moment that is believed: that of the machine, since nothing recorded can be younger. */
  constructor(latest: number) {
    this.#latest = latest;
  }

  /** Milliseconds since 1970. */
  get now(): number {
    return this.#now;
  }

  /** Goes on to an entry's moment. */
  advance(at: number | undefined): void {
    if (at === undefined) {
      this.repairs.missing += 1;
      if (!this.#set) this.#now += STEP_MS;
      return;
    }
    const moment = Math.floor(at);
    if (!(moment >= 1) || moment > this.#latest) {
      this.repairs.impossible += 1;
      return;
    }
    if (this.#set && moment < this.#before) this.repairs.backwards += 1;
    this.#before = moment;
    this.#now = this.#set ? Math.max(this.#now, moment) : Math.max(moment, 1);
    this.#set = true;
  }
}
