/**
 * The clock of an importing client. Imported data is valid from its own time, as far as it is
 * known.
 */
export class ImportClock {
  #moment: number | undefined;

  /** Returns milliseconds since 1970. */
  now = (): number => this.#moment ?? Date.now();

  /** Stops the clock at a time; undefined restores the machine's clock. */
  standAt(moment: number | undefined): void {
    this.#moment = moment;
  }
}
