/** The clock of an importing client. Imported data is valid from its own time, if that is known. */
export class ImportClock {
  #moment: number | undefined;

  /**
   * Returns the current time in milliseconds since 1970, or the time at which the clock was
   * stopped.
   */
  now = (): number => this.#moment ?? Date.now();

  /** Stops the clock at a time; undefined restores the machine's clock. */
  standAt(moment: number | undefined): void {
    this.#moment = moment;
  }
}
