import { type DisplayPaths, metadataOf, type ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, SessionId, Sha256 } from '../../objects/ids.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { HeadMarks } from '../../store/head.js';
import { DeferredWork } from '../../values/deferred-work.js';

/**
 * Due date of an object whose known version may be outdated. It is in the past, so the object is
 * read again.
 */
const UNSURE = new Date(0);

/** A described version: its shown metadata and its `object_hash`. */
interface Described {
  readonly metadata: ObjectMetadata;
  readonly hash: Sha256;
}

/** The last known database state of an object. */
export interface StoredMetadata extends Described {
  /** The transaction at which it is current, or 0 if unknown. */
  readonly txId: number;
}

/** The number of known objects of a session's index, and their transaction. */
export interface KnownObjects {
  readonly txId: number;
  readonly objects: number;
}

/**
 * Metadata of the content objects that a client has observed [§3.1], shared by its sessions.
 * Database states are ordered by transaction, although the client may learn them in another order.
 * Versions in delivery take precedence over them. For each session, the cache records the
 * transaction up to which it is complete. While only this client writes, nothing is read again.
 */
export class MetadataCache {
  /** Acknowledged versions that the cache does not have yet. */
  readonly deferred = new DeferredWork();
  readonly #stored = new Map<ObjectId, StoredMetadata>();
  readonly #acknowledged = new Map<ObjectId, Described>();
  readonly #sources = new Map<ObjectId, FilesystemSource>();
  readonly #hidden = new Set<ObjectId>();
  /** Objects whose newest version was dated later than the time at which it was read. */
  readonly #due = new Map<ObjectId, Date>();
  readonly #paths: DisplayPaths;
  readonly #known = new Map<SessionId, KnownObjects>();
  readonly #followers = new Set<Set<ObjectId>>();

  constructor(paths: DisplayPaths) {
    this.#paths = paths;
  }

  get(id: ObjectId): ObjectMetadata | undefined {
    this.deferred.flush();
    return (this.#acknowledged.get(id) ?? this.#stored.get(id))?.metadata;
  }

  /** Adds the ids of all objects learned from now on to a set, until `release`. */
  follow(learned: Set<ObjectId>): { release(): void } {
    this.deferred.flush();
    this.#followers.add(learned);
    return { release: () => void this.#followers.delete(learned) };
  }

  #note(id: ObjectId): void {
    for (const learned of this.#followers) learned.add(id);
  }

  /**
   * Returns the last known database state of an object, without versions in delivery. Undefined if
   * unknown.
   */
  stored(id: ObjectId): StoredMetadata | undefined {
    this.deferred.flush();
    return this.#stored.get(id);
  }

  /** Adds an acknowledged version. It takes precedence over the database state until `settle`. */
  acknowledge(version: object, marks: HeadMarks): void {
    const described = this.#described(version, marks);
    if (described === undefined) return;
    this.#acknowledged.set(described.metadata.id, described);
    this.#note(described.metadata.id);
  }

  /** Ends the delivery of an object, so that the database state counts again. */
  settle(id: ObjectId): void {
    this.deferred.flush();
    const acknowledged = this.#acknowledged.get(id);
    this.#acknowledged.delete(id);
    this.#note(id);
    if (acknowledged !== undefined && !this.#stored.has(id)) this.#stored.set(id, { ...acknowledged, txId: 0 });
  }

  /** Returns whether the known state of an object is not newer than a transaction. */
  isAsOf(id: ObjectId, txId: number): boolean {
    this.deferred.flush();
    return !this.#acknowledged.has(id) && this.#due.get(id) !== UNSURE && (this.#stored.get(id)?.txId ?? 0) <= txId;
  }

  /**
   * Returns whether the last known state is certainly the object's newest version at a transaction.
   * It may not be if a version has a future valid time.
   */
  isNewestAt(id: ObjectId, txId: number): boolean {
    this.deferred.flush();
    return this.isAsOf(id, txId) && !this.#due.has(id) && (this.#stored.get(id)?.txId ?? 0) > 0;
  }

  /**
   * Returns whether one of the objects is known but not shown here, because it is outside this
   * client's folders.
   */
  hidesAny(ids: readonly ObjectId[]): boolean {
    this.deferred.flush();
    return this.#hidden.size > 0 && ids.some((id) => this.#hidden.has(id));
  }

  /** Returns the source of an observed file. */
  source(id: ObjectId): FilesystemSource | undefined {
    this.deferred.flush();
    return this.#sources.get(id);
  }

  /**
   * Adds a version or head that is current at a transaction. `txId` is undefined if the transaction
   * is unknown. Then an object that was known before is marked for a new read, because the known
   * state may be newer.
   * @returns false, without a change, if a later transaction is known for the object
   */
  learn(versionOrHead: object, marks: HeadMarks, txId: number | undefined): boolean {
    this.deferred.flush();
    const described = this.#described(versionOrHead, marks);
    if (described === undefined) return true;
    const { id } = described.metadata;
    const before = this.#stored.get(id);
    if (txId !== undefined && txId < (before?.txId ?? 0)) return false;
    if (txId === undefined && before !== undefined) this.#due.set(id, UNSURE);
    this.#stored.set(id, { ...described, txId: txId ?? before?.txId ?? 0 });
    this.#note(id);
    return true;
  }

  /**
   * Records that an object's newest version, read at the time `at`, is valid from `from`. If
   * several times lie in the future, it keeps the earliest until that has passed.
   */
  setDue(id: ObjectId, { from, at }: { readonly from: Date; readonly at: Date }): void {
    const before = this.#due.get(id);
    if (from <= at) this.#due.delete(id);
    else if (before === undefined || before <= at || from < before) this.#due.set(id, from);
  }

  /**
   * Returns whether a version that was dated in the future when it was read has become valid since.
   */
  isDue(id: ObjectId, at: Date): boolean {
    const from = this.#due.get(id);
    return from !== undefined && from <= at;
  }

  /**
   * Returns the number of known objects of a session, and their transaction. Undefined before the
   * first query.
   */
  knownUpto(session: SessionId): KnownObjects | undefined {
    return this.#known.get(session);
  }

  /**
   * Records that the first `objects` entries of a session's index are known as of a transaction.
   */
  setKnown(
    session: SessionId,
    { txId, objects }: { readonly txId: number | undefined; readonly objects: number },
  ): void {
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
