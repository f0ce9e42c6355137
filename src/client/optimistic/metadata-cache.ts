import { type DisplayPaths, metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { HeadMarks } from '../../store/head.js';

/** A transaction that has no number yet: younger than any basis. */
export const NOT_YET = Number.POSITIVE_INFINITY;

/**
 * Metadata of the content objects that a client has observed [§3.1], shared by its sessions. Remembers for each session up to which transaction it is
 * complete: as long as only this client writes, nothing needs to be read again.
 */
export class MetadataCache {
  readonly #entries = new Map<ObjectId, ObjectMetadata>();
  readonly #learnedAt = new Map<ObjectId, number>();
  readonly #sources = new Map<ObjectId, FilesystemSource>();
  readonly #paths: DisplayPaths;
  readonly #upto = new Map<SessionId, number>();

  constructor(paths: DisplayPaths) {
    this.#paths = paths;
  }

  get(id: ObjectId): ObjectMetadata | undefined {
    return this.#entries.get(id);
  }

  /** Nothing of an object is under way any more: what the database says of it counts again. */
  settle(id: ObjectId): void {
    if (this.#learnedAt.get(id) === NOT_YET) this.#learnedAt.set(id, 0);
  }

  /** Whether nothing that is known of an object is younger than a transaction. */
  isAsOf(id: ObjectId, txId: number): boolean {
    return (this.#learnedAt.get(id) ?? 0) <= txId;
  }

  /** The source of a file that was observed. */
  source(id: ObjectId): FilesystemSource | undefined {
    return this.#sources.get(id);
  }

  /** Takes in a version or head that is current as of a transaction. */
  learn(versionOrHead: object, marks: HeadMarks, txId: number | undefined): void {
    const metadata = metadataOf(versionOrHead, marks, this.#paths);
    if (metadata === undefined) return;
    const known = this.#learnedAt.get(metadata.id) ?? 0;
    if ((txId ?? 0) < known) {
      // What is under way is newer than what the database had; which of them it is in the end, only the database can tell.
      if (known === NOT_YET) this.#upto.clear();
      return;
    }
    this.#entries.set(metadata.id, metadata);
    this.#learnedAt.set(metadata.id, txId ?? 0);
    if (metadata.type === 'file')
      this.#sources.set(metadata.id, parseSource((versionOrHead as { readonly source?: unknown }).source) as FilesystemSource);
  }

  /** Up to which transaction the objects of a session are known; undefined before the database was asked. */
  knownUpto(session: SessionId): number | undefined {
    return this.#upto.get(session);
  }

  /** All objects of a session are known as of a transaction. */
  setKnownUpto(session: SessionId, txId: number | undefined): void {
    if (txId !== undefined) this.#upto.set(session, txId);
  }
}
