/** Maximum pause between two records of a history that is written in one go, in milliseconds. */
const COPY_GAP_MS = 100;

/** The first 48 bits of a UUID of version 7 are its time, in milliseconds since 1970. */
const TIMED_ID = /^([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-/i;

/** Returns the time in an id; undefined for an id without one. */
function timeOf(id: string | undefined): number | undefined {
  const [, high, low] = TIMED_ID.exec(id ?? '') ?? [];
  return high === undefined || low === undefined ? undefined : Number.parseInt(high + low, 16);
}

/**
 * Separates a fork's copied history from its own records. The file repeats the parent's records
 * after the parent's meta. They are written in one go at the moment of the fork. Later versions
 * keep the old times. The copy ends with the first turn whose id is younger than the session,
 * otherwise with the first pause.
 */
export class CopiedHistory {
  /** When the session itself began. */
  #own: number | undefined;
  #began: number | undefined;
  #last: number | undefined;
  /**
   * The newest time in the ids of copied turns. Before the first turn, the time at which the parent
   * began.
   */
  #turn: number | undefined;
  #copying = false;

  /** Notes when the session itself began. */
  session(startedAt: number | undefined): void {
    this.#own = startedAt;
  }

  /** Starts the copy at the time of the parent's meta. */
  begin(at: number | undefined, parentStartedAt: number | undefined): void {
    this.#copying = at !== undefined;
    this.#began = at;
    this.#last = at;
    this.#turn = parentStartedAt;
  }

  /** Takes the id of a turn that a record names. */
  turn(id: string | undefined): void {
    const time = timeOf(id);
    if (!this.#copying || time === undefined) return;
    if (this.#own !== undefined && time >= this.#own) this.#copying = false;
    else this.#turn = Math.max(time, this.#turn ?? time);
  }

  /** Returns whether a record with this time belongs to the copy. */
  holds(at: number | undefined): boolean {
    if (!this.#copying || at === undefined || this.#began === undefined || this.#last === undefined)
      return this.#copying;
    if (at >= this.#began && at - this.#last > COPY_GAP_MS) this.#copying = false;
    this.#last = Math.max(at, this.#began);
    return this.#copying;
  }

  /** Returns when a copied record was made: the copy's own time says only when it was written. */
  madeAt(at: number | undefined): number | undefined {
    const isOfCopy = at === undefined || this.#began === undefined || at >= this.#began;
    return isOfCopy ? (this.#turn ?? at) : at;
  }
}
