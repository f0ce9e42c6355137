import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { OwnTransactions } from '../../store/write-path.js';

/** The parts of an object's newest version that a context needs. */
export interface KnownHead {
  /** Its `object_hash`. */
  readonly hash: Sha256;
  /** Confirmed deleted (decision C3). */
  readonly gone: boolean;
  /** Start of its validity, in milliseconds since 1970. */
  readonly validTime: number;
  /** Undefined for infrastructure objects. */
  readonly metadata: ObjectMetadata | undefined;
}

type Heads = ReadonlyMap<ObjectId, KnownHead>;

/** Database heads at a transaction. If an id in `asked` has no head, no such object exists. */
export interface HeadsReading {
  readonly txId: number;
  readonly asked: ReadonlySet<ObjectId>;
  readonly heads: Heads;
}

/** With more commits than this after the basis, a new read is cheaper than keeping them. */
const BEHIND = 64;
/** Maximum number of commits kept after the basis. */
const MOST_LATER = 1_000;

/** The newest versions that a transaction of this process wrote. */
export interface CommittedHeads {
  readonly heads: Heads;
  /** The transaction that the writer had read. Undefined if it read nothing. */
  readonly readAt: number | undefined;
}

/**
 * Holds the exact newest versions of a session's objects at one transaction, the basis. Also holds
 * this process's later writes. While no other process writes, the basis follows this process's
 * transactions and nothing is read.
 */
export class KnownHeads {
  readonly #own: OwnTransactions;
  readonly #isWanted: (id: ObjectId) => boolean;
  readonly #later = new Map<number, CommittedHeads>();
  /** Number of kept commits per object. */
  readonly #touched = new Map<ObjectId, number>();
  #heads = new Map<ObjectId, KnownHead>();
  /** Ids of the last read. */
  #asked: ReadonlySet<ObjectId> = new Set();
  #txId: number | undefined;
  #stale = false;
  /** The last evicted transaction. Reads and commits based on an older one are not used. */
  #since = Number.NEGATIVE_INFINITY;

  /**
   * `isWanted` returns whether an object belongs to the session. Versions of other objects are kept
   * too, but never cause a read.
   */
  constructor(own: OwnTransactions, isWanted: (id: ObjectId) => boolean = () => true) {
    this.#own = own;
    this.#isWanted = isWanted;
  }

  /** The transaction that `at` refers to. Undefined before the first read. */
  get basis(): number | undefined {
    return this.#txId;
  }

  /** Whether a write keeps the basis from moving on without a new read. */
  get isStale(): boolean {
    return this.#stale || this.#txId === undefined;
  }

  /**
   * Whether the basis is stuck before a transaction that was never passed to `wrote`. Examples are
   * an aborted transaction, and one that opened a session or stored a large text. Results stay
   * correct, but the kept commits grow.
   */
  get isBehind(): boolean {
    return this.#later.size > BEHIND;
  }

  /** The last read, updated to the basis. Undefined before the first read. */
  get reading(): HeadsReading | undefined {
    return this.#txId === undefined ? undefined : { txId: this.#txId, asked: this.#asked, heads: new Map(this.#heads) };
  }

  /**
   * Returns an object's newest version at the basis. Undefined for an unknown or missing object.
   */
  at(id: ObjectId): KnownHead | undefined {
    return this.#heads.get(id);
  }

  /**
   * Returns the newest known version: a later write of this process, or else the version at the
   * basis.
   */
  newest(id: ObjectId): KnownHead | undefined {
    let found = this.#heads.get(id);
    if (!this.#touched.has(id)) return found;
    let foundAt = Number.NEGATIVE_INFINITY;
    // Commits are not in transaction order. Of equal valid times, the later transaction wins.
    for (const [txId, { heads }] of this.#later) {
      const head = heads.get(id);
      if (head === undefined) continue;
      const since = found?.validTime ?? Number.NEGATIVE_INFINITY;
      if (head.validTime > since || (head.validTime === since && txId > foundAt)) [found, foundAt] = [head, txId];
    }
    return found;
  }

  /** Applies a read of all `asked` ids at a transaction. */
  read({ txId, asked, heads }: HeadsReading): void {
    if ((this.#txId !== undefined && txId < this.#txId) || txId < this.#since) return;
    const before = [...this.#later].sort(([a], [b]) => a - b);
    this.#txId = txId;
    this.#asked = asked;
    this.#heads = new Map(heads);
    this.#stale = false;
    this.#later.clear();
    this.#touched.clear();
    for (const [id, commit] of before) this.#take(id, commit);
    this.#follow();
  }

  /**
   * Applies a committed write of this process. `txId` is undefined if the database already had the
   * write.
   */
  wrote(txId: number | undefined, commit: CommittedHeads): void {
    if (txId === undefined) {
      this.#stale ||= commit.heads.size > 0;
      return;
    }
    this.#take(txId, commit);
    this.#follow();
    if (this.#later.size > MOST_LATER) this.#forget();
  }

  #take(txId: number, commit: CommittedHeads): void {
    if (this.#txId === undefined || txId > this.#txId) {
      this.#keep(txId, commit);
      return;
    }
    // The read at the basis covers every asked id. The other objects joined the session later.
    const fresh = new Map([...commit.heads].filter(([id]) => !this.#asked.has(id)));
    if (fresh.size === 0) return;
    if (this.#isUncontested(txId, commit)) this.#add(fresh);
    else if ([...fresh.keys()].some(this.#isWanted)) {
      this.#keep(txId, { ...commit, heads: fresh });
      this.#stale = true;
    } else {
      for (const id of fresh.keys()) this.#heads.delete(id);
      this.#since = Math.max(this.#since, txId);
    }
  }

  #keep(txId: number, commit: CommittedHeads): void {
    this.#count(txId, -1);
    this.#later.set(txId, commit);
    this.#count(txId, 1);
  }

  #count(txId: number, by: 1 | -1): void {
    for (const id of this.#later.get(txId)?.heads.keys() ?? []) {
      const count = (this.#touched.get(id) ?? 0) + by;
      if (count > 0) this.#touched.set(id, count);
      else this.#touched.delete(id);
    }
  }

  #follow(): void {
    for (;;) {
      if (this.#txId === undefined || this.#stale) return;
      const next = this.#txId + 1;
      const commit = this.#later.get(next);
      if (commit === undefined) return;
      if (commit.heads.size > 0 && !this.#isUncontested(next, commit)) {
        this.#stale = true;
        return;
      }
      this.#add(commit.heads);
      this.#count(next, -1);
      this.#later.delete(next);
      this.#txId = next;
    }
  }

  /**
   * Returns whether no other process can have written between the basis and the read on which the
   * commit was planned.
   */
  #isUncontested(txId: number, { readAt = txId }: CommittedHeads): boolean {
    return readAt >= this.#since && this.#own.cover(readAt, this.#txId ?? readAt);
  }

  #add(heads: Heads): void {
    for (const [id, head] of heads) {
      if ((this.#heads.get(id)?.validTime ?? Number.NEGATIVE_INFINITY) <= head.validTime) this.#heads.set(id, head);
    }
  }

  /** Drops everything, because the session has not needed a context for long. */
  #forget(): void {
    this.#since = Math.max(this.#since, ...this.#later.keys());
    this.#later.clear();
    this.#touched.clear();
    this.#heads.clear();
    this.#asked = new Set();
    this.#txId = undefined;
  }
}
