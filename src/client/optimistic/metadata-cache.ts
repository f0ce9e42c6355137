import { type DisplayPaths, metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { HeadMarks } from '../../store/head.js';
import { PutOff } from '../../values/put-off.js';

/** The date of a version that may be an older one than the database has: it has come, so that the object is read again. */
const UNSURE = new Date(0);

/** A version that was described: what is shown of it, and its `object_hash`. */
interface Described {
  readonly metadata: ObjectMetadata;
  readonly hash: Sha256;
}

/** What the database said last of an object. */
export interface StoredMetadata extends Described {
  /** The transaction that it is current as of; 0 where that is not known. */
  readonly txId: number;
}

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
  /** What is acknowledged and not taken in yet. */
  readonly late = new PutOff();
  readonly #stored = new Map<ObjectId, StoredMetadata>();
  readonly #acknowledged = new Map<ObjectId, Described>();
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
    this.late.now();
    return (this.#acknowledged.get(id) ?? this.#stored.get(id))?.metadata;
  }

  /** What the database said last of an object, whatever is acknowledged and under way; undefined where it has not been heard. */
  stored(id: ObjectId): StoredMetadata | undefined {
    this.late.now();
    return this.#stored.get(id);
  }

  /** Takes in a version that is acknowledged: it stands over what the database says until `settle`. */
  acknowledge(version: object, marks: HeadMarks): void {
    const described = this.#described(version, marks);
    if (described !== undefined) this.#acknowledged.set(described.metadata.id, described);
  }

  /** Nothing of an object is under way any more: what the database says of it counts again. */
  settle(id: ObjectId): void {
    this.late.now();
    const acknowledged = this.#acknowledged.get(id);
    this.#acknowledged.delete(id);
    if (acknowledged !== undefined && !this.#stored.has(id)) this.#stored.set(id, { ...acknowledged, txId: 0 });
  }

  /** Whether nothing that is known of an object is younger than a transaction. */
  isAsOf(id: ObjectId, txId: number): boolean {
    this.late.now();
    return !this.#acknowledged.has(id) && this.#due.get(id) !== UNSURE && (this.#stored.get(id)?.txId ?? 0) <= txId;
  }

  /** Whether what the database said last of an object is its newest version at a transaction that it is known as of, whatever date another clock gave it. */
  isNewestAt(id: ObjectId, txId: number): boolean {
    this.late.now();
    return this.isAsOf(id, txId) && !this.#due.has(id) && (this.#stored.get(id)?.txId ?? 0) > 0;
  }

  /** Whether one of some objects is known and not shown here: a file outside the folders of this client. */
  hidesAny(ids: readonly ObjectId[]): boolean {
    this.late.now();
    return this.#hidden.size > 0 && ids.some((id) => this.#hidden.has(id));
  }

  /** The source of a file that was observed. */
  source(id: ObjectId): FilesystemSource | undefined {
    this.late.now();
    return this.#sources.get(id);
  }

  /**
   * Takes in a version or head that is current as of a transaction; undefined where the database has it since a transaction that is not known: where something
   * was known of the object, which may be younger, it is due to be read again. Returns false, and changes nothing, where a younger transaction said something of
   * the object already.
   */
  learn(versionOrHead: object, marks: HeadMarks, txId: number | undefined): boolean {
    this.late.now();
    const described = this.#described(versionOrHead, marks);
    if (described === undefined) return true;
    const { id } = described.metadata;
    const before = this.#stored.get(id);
    if (txId !== undefined && txId < (before?.txId ?? 0)) return false;
    if (txId === undefined && before !== undefined) this.#due.set(id, UNSURE);
    this.#stored.set(id, { ...described, txId: txId ?? before?.txId ?? 0 });
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

  #described(versionOrHead: object, marks: HeadMarks): Described | undefined {
    const metadata = metadataOf(versionOrHead, marks, this.#paths);
    const {
      type,
      'xt/id': id,
      object_hash: hash,
      source,
    } = versionOrHead as {
      readonly type?: unknown;
      readonly 'xt/id': ObjectId;
      readonly object_hash: Sha256;
      readonly source?: unknown;
    };
    if (metadata === undefined && type === 'file') this.#hidden.add(id);
    if (metadata?.type === 'file') this.#sources.set(id, parseSource(source) as FilesystemSource);
    return metadata === undefined ? undefined : { metadata, hash };
  }
}
