/** Thrown when a file of an index is damaged or incomplete. The index can be rebuilt. */
export class IndexDamage extends Error {
  override readonly name = 'IndexDamage';

  constructor(what: string, options?: ErrorOptions) {
    super(`The search index is damaged: ${what} cannot be read. The next search rebuilds it.`, options);
  }
}

/** Thrown when a reader uses a segment that was replaced and has been closed since. */
export class IndexClosed extends Error {
  override readonly name = 'IndexClosed';

  constructor() {
    super('The search index was rebuilt during a search.');
  }
}
