import { LRUCache } from 'lru-cache';
import type { FileObservation } from '../../indexing/decide-file.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { ObjectVersion } from '../../objects/seal.js';
import type { FoundVersion, Head } from '../../store/store-snapshot.js';
import type { MetadataCache } from './metadata-cache.js';

/** A version with the store's marks. */
export interface MarkedVersion extends FoundVersion {
  readonly version: ObjectVersion;
  /** The whole text where `content` holds only its head and tail and this process has it. */
  readonly wholeText?: () => string;
  /** Of a file on its way: what was observed, and when it was acknowledged, milliseconds since 1970. */
  readonly observed?: { readonly file: FileObservation; readonly at: number };
}

/** A version of a file that a transaction writes. */
export interface WrittenFile extends MarkedVersion {
  readonly validTime: Date;
  /** True where it is written only if the database holds nothing of the file. */
  readonly onlyIfAbsent: boolean;
}

/** What a transaction of this client wrote, and what it read to decide that. */
export interface WrittenObjects {
  readonly written: readonly MarkedVersion[];
  /** Those of them that are files. */
  readonly files: readonly WrittenFile[];
  /** Heads of files that existed and stayed as they were. */
  readonly observed: readonly Head[];
  /** The transaction that `observed` was read at. */
  readonly observedAt: number | undefined;
}

/** Versions of one write that are acknowledged and on their way to the database. */
export interface OnTheirWay {
  readonly journaled: boolean;
  /** None until somebody asks for what is known here. */
  versions: readonly MarkedVersion[];
}

class PendingVersions {
  /** In the order in which they were acknowledged. */
  readonly #entries = new Map<ObjectId, MarkedVersion[]>();

  /** The newest one. */
  get(id: ObjectId): MarkedVersion | undefined {
    return this.#entries.get(id)?.at(-1);
  }

  /** The newest one of some content. */
  find(id: ObjectId, hash: Sha256): MarkedVersion | undefined {
    return this.#entries.get(id)?.findLast(({ version }) => version.object_hash === hash);
  }

  add(version: MarkedVersion): void {
    const id = version.version['xt/id'];
    const entries = this.#entries.get(id);
    if (entries === undefined) this.#entries.set(id, [version]);
    else entries.push(version);
  }

  /** Takes one away; true when it was the last one of its object. */
  remove(version: MarkedVersion): boolean {
    const id = version.version['xt/id'];
    const entries = this.#entries.get(id) ?? [];
    const place = entries.indexOf(version);
    if (place < 0) return false;
    entries.splice(place, 1);
    return entries.length === 0 && this.#entries.delete(id);
  }
}

/** What cannot be made here fails where its write is planned, too, and there somebody is told. */
function orNone(make: () => readonly MarkedVersion[]): readonly MarkedVersion[] {
  try {
    return make();
  } catch {
    return [];
  }
}

/**
 * The versions that a client knows without asking the database: those that it has acknowledged and that are on their way there, and those that it wrote or
 * loaded last, bounded by size. They serve its own reads (decision F4), and contexts while the database is away.
 */
export class KnownVersions {
  readonly #metadata: MetadataCache;
  readonly #recent: LRUCache<ObjectId, MarkedVersion>;
  readonly #pending = new PendingVersions();
  readonly #journaled = new PendingVersions();
  readonly #carried = new WeakSet<MarkedVersion>();

  /** `maxUnits` bounds the sum of the recent contents' lengths in UTF-16 units. */
  constructor(metadata: MetadataCache, maxUnits = 8 * 1_048_576) {
    this.#metadata = metadata;
    this.#recent = new LRUCache({ maxSize: maxUnits, sizeCalculation: ({ version }) => (version.content?.length ?? 0) + 1_024 });
  }

  /** The newest version of an object that is acknowledged and not yet in the database. */
  pending(id: ObjectId): MarkedVersion | undefined {
    this.#metadata.late.now();
    return this.#pending.get(id);
  }

  /** The newest version of an object that is in the journal and not yet in the database: whatever becomes of this process, the database will have it. */
  journaled(id: ObjectId): MarkedVersion | undefined {
    this.#metadata.late.now();
    return this.#journaled.get(id);
  }

  /** The version of a file of some content that is on its way and that neither a journal nor the record of a context holds, where one is: it would be lost with this process. */
  unjournaled(id: ObjectId, hash: Sha256): MarkedVersion | undefined {
    this.#metadata.late.now();
    const version = this.#journaled.find(id, hash) === undefined ? this.#pending.find(id, hash) : undefined;
    return version === undefined || this.#carried.has(version) ? undefined : version;
  }

  /** Notes that the record of a context, which is in the journal, carries a version. */
  carry(version: MarkedVersion): void {
    this.#carried.add(version);
  }

  /** The version of an object that was written or loaded last, if it is still held. */
  recent(id: ObjectId): MarkedVersion | undefined {
    this.#metadata.late.now();
    return this.#recent.get(id);
  }

  /** The newest version of an object that is known here. */
  newest(id: ObjectId): MarkedVersion | undefined {
    this.#metadata.late.now();
    return this.#pending.get(id) ?? this.#recent.get(id);
  }

  /** Takes in a version that was loaded from the database as of a transaction, unless something younger of its object is known. */
  loaded(version: MarkedVersion, txId: number | undefined): void {
    this.#metadata.late.now();
    if (txId === undefined || this.#metadata.isAsOf(version.version['xt/id'], txId)) this.#remember(version);
  }

  /**
   * Takes in versions that are acknowledged and on their way to the database. They are made when somebody asks for what is known here, or a moment later: the answer that
   * the agent waits for goes first. `settle` ends it.
   */
  acknowledge(make: () => readonly MarkedVersion[], journaled: boolean): OnTheirWay {
    const taken: OnTheirWay = { journaled, versions: [] };
    this.#metadata.late.add(() => {
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

  /** Says that acknowledged versions are on their way no longer. */
  settle(taken: OnTheirWay): void {
    this.#metadata.late.now();
    for (const version of taken.versions) {
      if (taken.journaled) this.#journaled.remove(version);
      if (this.#pending.remove(version)) this.#metadata.settle(version.version['xt/id']);
    }
    taken.versions = [];
  }

  /**
   * Takes in what the database made of a write, unless something newer of the same object is known or on its way: what came of two writes may be learned in
   * another order than that of their transactions.
   */
  committed({ written, observed, observedAt }: WrittenObjects, txId: number | undefined): void {
    this.#metadata.late.now();
    for (const { version, marks } of written) {
      const isNewest = this.#metadata.learn(version, marks, txId);
      if (isNewest && this.#pending.get(version['xt/id']) === undefined) this.#remember({ version, marks });
    }
    // Read when the write was planned: what was committed since is newer.
    for (const { document, marks } of observed) this.#metadata.learn(document, marks, observedAt);
  }

  #remember({ version, marks }: MarkedVersion): void {
    this.#recent.set(version['xt/id'], { version, marks });
  }
}
