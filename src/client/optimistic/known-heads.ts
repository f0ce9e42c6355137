import type { ObjectMetadata } from '../../assembly/metadata.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { OwnTransactions } from '../../store/write-path.js';

/** What a context needs of the newest version of an object. */
export interface KnownHead {
  /** Its `object_hash`. */
  readonly hash: Sha256;
  /** Confirmed deleted (decision C3). */
  readonly gone: boolean;
  /** From when on it holds, milliseconds since 1970. */
  readonly validTime: number;
  /** Undefined for infrastructure. */
  readonly metadata: ObjectMetadata | undefined;
}

type Heads = ReadonlyMap<ObjectId, KnownHead>;

/** What the database holds of some objects at a transaction; ids without an entry are not there. */
export interface HeadsReading {
  readonly txId: number;
  readonly asked: ReadonlySet<ObjectId>;
  readonly heads: Heads;
}

/** With more commits than this after the basis, reading again is cheaper than keeping them. */
const BEHIND = 64;
/** The most commits after the basis that are kept. */
const MOST_LATER = 1_000;

/** What a transaction of this process left of some objects. */
export interface CommittedHeads {
  readonly heads: Heads;
  /** The transaction that it was decided at; undefined where it was decided without reading. */
  readonly readAt: number | undefined;
}

/**
 * The newest versions of a session's objects as of one transaction, the basis, exactly; and beside it what this process itself has written after it. As
 * long as nobody else writes, the basis follows this process's own transactions one by one and nothing is read.
 */
export class KnownHeads {
  readonly #own: OwnTransactions;
  readonly #isWanted: (id: ObjectId) => boolean;
  readonly #later = new Map<number, CommittedHeads>();
  /** In how many of those each object is. */
  readonly #touched = new Map<ObjectId, number>();
  #heads = new Map<ObjectId, KnownHead>();
  /** Ids of the last reading. */
  #asked: ReadonlySet<ObjectId> = new Set();
  #txId: number | undefined;
  #stale = false;
  /** The last transaction that was forgotten: what was decided or read before it does not count. */
  #since = Number.NEGATIVE_INFINITY;

  /** `isWanted` says whether an object is one of the session's: objects of other sessions are followed too, but nothing is read again for them. */
  constructor(own: OwnTransactions, isWanted: (id: ObjectId) => boolean = () => true) {
    this.#own = own;
    this.#isWanted = isWanted;
  }

  /** The transaction that `at` speaks of; undefined as long as nothing was read. */
  get basis(): number | undefined {
    return this.#txId;
  }

  /** Whether something was written that the basis cannot follow: only reading again brings it further. */
  get isStale(): boolean {
    return this.#stale || this.#txId === undefined;
  }

  /**
   * Whether the basis stands still before a transaction of this process that `wrote` was never called for: an aborted one, a session that was opened, a
   * large text. Every answer stays right, but the commits that are kept grow in number.
   */
  get isBehind(): boolean {
    return this.#later.size > BEHIND;
  }

  /** What was read, as it stands at the basis; undefined as long as nothing was. */
  get reading(): HeadsReading | undefined {
    return this.#txId === undefined ? undefined : { txId: this.#txId, asked: this.#asked, heads: new Map(this.#heads) };
  }

  /** The version that is the newest one at the basis; undefined for an object that is not known, or was not there. */
  at(id: ObjectId): KnownHead | undefined {
    return this.#heads.get(id);
  }

  /** The newest version that is known: what this process wrote after the basis, else the one at the basis. */
  newest(id: ObjectId): KnownHead | undefined {
    let found = this.#heads.get(id);
    if (!this.#touched.has(id)) return found;
    let foundAt = Number.NEGATIVE_INFINITY;
    // Kept in the order in which they were reported: of two versions that hold from the same moment the one of the later transaction counts.
    for (const [txId, { heads }] of this.#later) {
      const head = heads.get(id);
      if (head === undefined) continue;
      const since = found?.validTime ?? Number.NEGATIVE_INFINITY;
      if (head.validTime > since || (head.validTime === since && txId > foundAt)) [found, foundAt] = [head, txId];
    }
    return found;
  }

  /** Takes in what the database holds at a transaction, of all the ids that were asked for. */
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

  /** Takes in what a committed transaction of this process wrote; without a number it was found to be there already. */
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
    // It was read with the basis, or its object came into the session after that was read.
    const fresh = new Map([...commit.heads].filter(([id]) => !this.#asked.has(id)));
    if (fresh.size === 0) return;
    if (this.#counts(txId, commit)) this.#add(fresh);
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
      if (commit.heads.size > 0 && !this.#counts(next, commit)) {
        this.#stale = true;
        return;
      }
      this.#add(commit.heads);
      this.#count(next, -1);
      this.#later.delete(next);
      this.#txId = next;
    }
  }

  /** Whether nobody else can have written between what a commit was decided by and the basis. */
  #counts(txId: number, { readAt = txId }: CommittedHeads): boolean {
    return readAt >= this.#since && this.#own.cover(readAt, this.#txId ?? readAt);
  }

  #add(heads: Heads): void {
    for (const [id, head] of heads) {
      if ((this.#heads.get(id)?.validTime ?? Number.NEGATIVE_INFINITY) <= head.validTime) this.#heads.set(id, head);
    }
  }

  /** A session that nobody has asked for a context for long: the next one reads everything again. */
  #forget(): void {
    this.#since = Math.max(this.#since, ...this.#later.keys());
    this.#later.clear();
    this.#touched.clear();
    this.#heads.clear();
    this.#asked = new Set();
    this.#txId = undefined;
  }
}
