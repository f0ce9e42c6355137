import { type DisplayPaths, metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId } from '../../objects/ids.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { HeadMarks } from '../../store/head.js';

/** The date of a version that may be an older one than the database has: it has come, so that the object is read again. */
const UNSURE = new Date(0);

/** How far the objects of a session are known: the first ones of its index, as of a transaction. */
export interface KnownObjects {
  readonly txId: number;
  readonly objects: number;
}

/**
 * Metadata of the content objects that a client has observed [§3.1], shared by its sessions: what the database says by the order of its transactions, in
 * whatever order the client learns it, and over it what is acknowledged and under way. Remembers for each session up to which transaction it is complete: as
 * long as only this client writes, nothing needs to be read again.
 */
export class MetadataCache {
  readonly #stored = new Map<ObjectId, ObjectMetadata>();
  /** The transaction that `#stored` is current as of. */
  readonly #storedAt = new Map<ObjectId, number>();
  readonly #acknowledged = new Map<ObjectId, ObjectMetadata>();
  readonly #sources = new Map<ObjectId, FilesystemSource>();
  readonly #hidden = new Set<ObjectId>();
  /** Objects whose newest version is dated later than it was read at. */
  readonly #due = new Map<ObjectId, Date>();
  readonly #paths: DisplayPaths;
  readonly #known = new Map<SessionId, KnownObjects>();

  constructor(paths: DisplayPaths) {
    this.#paths = paths;
  }

  get(id: ObjectId): ObjectMetadata | undefined {
    return this.#acknowledged.get(id) ?? this.#stored.get(id);
  }

  /** Takes in a version that is acknowledged: it stands over what the database says until `settle`. */
  acknowledge(version: object, marks: HeadMarks): void {
    const metadata = this.#described(version, marks);
    if (metadata !== undefined) this.#acknowledged.set(metadata.id, metadata);
  }

  /** Nothing of an object is under way any more: what the database says of it counts again. */
  settle(id: ObjectId): void {
    const acknowledged = this.#acknowledged.get(id);
    this.#acknowledged.delete(id);
    if (acknowledged !== undefined && !this.#stored.has(id)) this.#stored.set(id, acknowledged);
  }

  /** Whether nothing that is known of an object is younger than a transaction. */
  isAsOf(id: ObjectId, txId: number): boolean {
    return !this.#acknowledged.has(id) && this.#due.get(id) !== UNSURE && (this.#storedAt.get(id) ?? 0) <= txId;
  }

  /** Whether one of some objects is known and not shown here: a file outside the folders of this client. */
  hidesAny(ids: readonly ObjectId[]): boolean {
    return this.#hidden.size > 0 && ids.some((id) => this.#hidden.has(id));
  }

  /** The source of a file that was observed. */
  source(id: ObjectId): FilesystemSource | undefined {
    return this.#sources.get(id);
  }

  /**
   * Takes in a version or head that is current as of a transaction; undefined where the database has it since a transaction that is not known: where something
   * was known of the object, which may be younger, it is due to be read again. Returns false, and changes nothing, where a younger transaction said something of
   * the object already.
   */
  learn(versionOrHead: object, marks: HeadMarks, txId: number | undefined): boolean {
    const metadata = this.#described(versionOrHead, marks);
    if (metadata === undefined) return true;
    const known = this.#storedAt.get(metadata.id) ?? 0;
    if (txId !== undefined && txId < known) return false;
    if (txId === undefined && this.#stored.has(metadata.id)) this.#due.set(metadata.id, UNSURE);
    this.#stored.set(metadata.id, metadata);
    this.#storedAt.set(metadata.id, txId ?? known);
    return true;
  }

  /** Notes from when on the newest version of an object holds, read at a moment. Of several that hold later, the first one's date stays until it has come. */
  setDue(id: ObjectId, { from, at }: { readonly from: Date; readonly at: Date }): void {
    const before = this.#due.get(id);
    if (from <= at) this.#due.delete(id);
    else if (before === undefined || before <= at || from < before) this.#due.set(id, from);
  }

  /** Whether a version of an object that was dated later than it was read at holds at a moment. */
  isDue(id: ObjectId, at: Date): boolean {
    const from = this.#due.get(id);
    return from !== undefined && from <= at;
  }

  /** Up to which transaction how many objects of a session are known; undefined before the database was asked. */
  knownUpto(session: SessionId): KnownObjects | undefined {
    return this.#known.get(session);
  }

  /** So many of the first objects of a session's index are known as of a transaction. */
  setKnown(session: SessionId, { txId, objects }: { readonly txId: number | undefined; readonly objects: number }): void {
    if (txId !== undefined) this.#known.set(session, { txId, objects });
  }

  #described(versionOrHead: object, marks: HeadMarks): ObjectMetadata | undefined {
    const metadata = metadataOf(versionOrHead, marks, this.#paths);
    const { type, 'xt/id': id } = versionOrHead as { readonly type?: unknown; readonly 'xt/id': ObjectId };
    if (metadata === undefined && type === 'file') this.#hidden.add(id);
    if (metadata?.type === 'file')
      this.#sources.set(metadata.id, parseSource((versionOrHead as { readonly source?: unknown }).source) as FilesystemSource);
    return metadata;
  }
}
