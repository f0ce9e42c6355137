/** The clock of a client that imports: what is imported holds from when it did, as far as that is known. */
export class ImportClock {
  #moment: number | undefined;

  /** Milliseconds since 1970. */
  now = (): number => this.#moment ?? Date.now();

  /** Stands at a moment; undefined for the machine's own clock. */
  standAt(moment: number | undefined): void {
    this.#moment = moment;
  }
}
