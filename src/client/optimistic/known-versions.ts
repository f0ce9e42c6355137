import { LRUCache } from 'lru-cache';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { FoundVersion, Head } from '../../store/snapshot-rows.js';
import type { FileObservation } from '../decide-file.js';
import type { MetadataCache } from './metadata-cache.js';

/** A version with the store's marks. */
export interface MarkedVersion extends FoundVersion {
  readonly version: ObjectVersion;
  /** Returns the whole text, if `content` holds only its head and tail and this process has it. */
  readonly wholeText?: () => string;
  /**
   * For a file in delivery: the observation and its acknowledgement time, in milliseconds since
   * 1970.
   */
  readonly observed?: { readonly file: FileObservation; readonly at: number };
}

/** A version of a file that a transaction writes. */
export interface WrittenFile extends MarkedVersion {
  readonly validTime: Date;
  /** Whether the version is written only if the database has no version of the file. */
  readonly onlyIfAbsent: boolean;
}

/** Objects that a transaction of this client wrote, and those that were read to plan it. */
export interface WrittenObjects {
  readonly written: readonly MarkedVersion[];
  /** The files among them. */
  readonly files: readonly WrittenFile[];
  /** Heads of existing, unchanged files. */
  readonly observed: readonly Head[];
  /** The transaction of the `observed` heads. */
  readonly observedAt: number | undefined;
}

/** The acknowledged versions of one write in delivery. */
export interface VersionsInDelivery {
  readonly journaled: boolean;
  /** Empty until a read needs local versions. */
  versions: readonly MarkedVersion[];
}

class PendingVersions {
  /** In order of acknowledgement. */
  readonly #entries = new Map<ObjectId, MarkedVersion[]>();

  /** Returns the newest version. */
  get(id: ObjectId): MarkedVersion | undefined {
    return this.#entries.get(id)?.at(-1);
  }

  /** Returns the newest version with the given hash. */
  find(id: ObjectId, hash: Sha256): MarkedVersion | undefined {
    return this.#entries.get(id)?.findLast(({ version }) => version.object_hash === hash);
  }

  add(version: MarkedVersion): void {
    const id = version.version['xt/id'];
    const entries = this.#entries.get(id);
    if (entries === undefined) this.#entries.set(id, [version]);
    else entries.push(version);
  }

  /** Removes a version. Returns true if its object has no other version here. */
  remove(version: MarkedVersion): boolean {
    const id = version.version['xt/id'];
    const entries = this.#entries.get(id) ?? [];
    const place = entries.indexOf(version);
    if (place < 0) return false;
    entries.splice(place, 1);
    return entries.length === 0 && this.#entries.delete(id);
  }
}

/** Returns no versions on failure. The write's plan fails with the same error and reports it. */
function orNone(make: () => readonly MarkedVersion[]): readonly MarkedVersion[] {
  try {
    return make();
  } catch {
    return [];
  }
}

/**
 * The versions that a client knows without the database: those in delivery, and the last written or
 * loaded ones, bounded by size. They serve the client's own reads (decision F4), and contexts
 * during an outage.
 */
export class KnownVersions {
  readonly #metadata: MetadataCache;
  readonly #recent: LRUCache<ObjectId, MarkedVersion>;
  readonly #pending = new PendingVersions();
  readonly #journaled = new PendingVersions();
  readonly #carried = new WeakSet<MarkedVersion>();

  /** `maxUnits` limits the total length of recent contents, in UTF-16 units. */
  constructor(metadata: MetadataCache, maxUnits = 8 * 1_048_576) {
    this.#metadata = metadata;
    this.#recent = new LRUCache({
      maxSize: maxUnits,
      sizeCalculation: ({ version }) => (version.content?.length ?? 0) + 1_024,
    });
  }

  /** Returns the newest acknowledged version of an object that the database lacks. */
  pending(id: ObjectId): MarkedVersion | undefined {
    this.#metadata.deferred.flush();
    return this.#pending.get(id);
  }

  /**
   * Returns the newest journaled version of an object that the database lacks. It reaches the
   * database even if this process dies.
   */
  journaled(id: ObjectId): MarkedVersion | undefined {
    this.#metadata.deferred.flush();
    return this.#journaled.get(id);
  }

  /**
   * Returns a file version in delivery that exists only in this process: in no journal and no
   * assembly record.
   */
  unjournaled(id: ObjectId, hash: Sha256): MarkedVersion | undefined {
    this.#metadata.deferred.flush();
    const version = this.#journaled.find(id, hash) === undefined ? this.#pending.find(id, hash) : undefined;
    return version === undefined || this.#carried.has(version) ? undefined : version;
  }

  /** Marks a version as contained in a journaled assembly record. */
  carry(version: MarkedVersion): void {
    this.#carried.add(version);
  }

  /** Returns the last written or loaded version of an object, if still cached. */
  recent(id: ObjectId): MarkedVersion | undefined {
    this.#metadata.deferred.flush();
    return this.#recent.get(id);
  }

  /** Returns the newest version of an object known here. */
  newest(id: ObjectId): MarkedVersion | undefined {
    this.#metadata.deferred.flush();
    return this.#pending.get(id) ?? this.#recent.get(id);
  }

  /** Adds a version loaded from the database as of a transaction, unless a newer one is known. */
  loaded(version: MarkedVersion, txId: number | undefined): void {
    this.#metadata.deferred.flush();
    if (txId === undefined || this.#metadata.isAsOf(version.version['xt/id'], txId)) this.#remember(version);
  }

  /**
   * Adds acknowledged versions in delivery; `settle` removes them. `make` creates them on the first
   * local read, or a millisecond later, so that the response is sent first.
   */
  acknowledge(make: () => readonly MarkedVersion[], journaled: boolean): VersionsInDelivery {
    const taken: VersionsInDelivery = { journaled, versions: [] };
    this.#metadata.deferred.add(() => {
      taken.versions = orNone(make);
      for (const version of taken.versions) this.#acknowledge(version, journaled);
    });
    return taken;
  }

  #acknowledge(version: MarkedVersion, journaled: boolean): void {
    this.#pending.add(version);
    if (journaled) this.#journaled.add(version);
    this.#metadata.acknowledge(version.version, version.marks);
    this.#remember(version);
  }

  /** Marks acknowledged versions as no longer in delivery. */
  settle(taken: VersionsInDelivery): void {
    this.#metadata.deferred.flush();
    for (const version of taken.versions) {
      if (taken.journaled) this.#journaled.remove(version);
      if (this.#pending.remove(version)) this.#metadata.settle(version.version['xt/id']);
    }
    taken.versions = [];
  }

  /**
   * Applies the stored result of a write, unless a newer version of the object is known or in
   * delivery. Results may arrive in another order than their transactions.
   */
  committed({ written, observed, observedAt }: WrittenObjects, txId: number | undefined): void {
    this.#metadata.deferred.flush();
    for (const { version, marks } of written) {
      const isNewest = this.#metadata.learn(version, marks, txId);
      if (isNewest && this.#pending.get(version['xt/id']) === undefined) this.#remember({ version, marks });
    }
    // The observed heads were read when the write was planned, so a later commit is newer.
    for (const { document, marks } of observed) this.#metadata.learn(document, marks, observedAt);
  }

  #remember({ version, marks }: MarkedVersion): void {
    this.#recent.set(version['xt/id'], { version, marks });
  }
}
