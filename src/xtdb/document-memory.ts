import type { StoredDocument } from './documents.js';

/** A document that was read at some basis, and from when on it holds, where that was asked for. */
export interface RememberedDocument {
  readonly document: StoredDocument;
  readonly since: Date | undefined;
}

/** What was read at one basis, for whoever asks for the same documents again: there they are always the same. Grows with what is read. */
export class DocumentMemory {
  readonly #documents = new Map<string, RememberedDocument | undefined>();

  /** Whether it is known what stands under an id, and, with `dated`, from when on. */
  knows(id: string, dated = false): boolean {
    const known = this.#documents.get(id);
    return known === undefined ? this.#documents.has(id) : !dated || known.since !== undefined;
  }

  /** What is known to stand under an id; undefined where nothing does, or nothing is known. */
  get(id: string): RememberedDocument | undefined {
    return this.#documents.get(id);
  }

  /** Takes in a document that was read. */
  learn(document: StoredDocument, since?: Date): void {
    const id = String(document['xt/id']);
    this.#documents.set(id, { document, since: since ?? this.#documents.get(id)?.since });
  }

  /** Takes in that nothing stands under those of some ids that are not known by now. */
  learnAbsent(ids: readonly string[]): void {
    for (const id of ids) if (!this.#documents.has(id)) this.#documents.set(id, undefined);
  }
}
