import type { ObjectMetadata } from '../assembly/metadata.js';
import type { ObjectId, Sha256 } from '../objects/ids.js';
import type { OwnTransactions } from '../store/own-transactions.js';

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
  readonly #later = new Map<number, CommittedHeads>();
  #heads = new Map<ObjectId, KnownHead>();
  #txId: number | undefined;
  #stale = false;

  constructor(own: OwnTransactions) {
    this.#own = own;
  }

  /** The transaction that `at` speaks of; undefined as long as nothing was read. */
  get basis(): number | undefined {
    return this.#txId;
  }

  /** Whether something was written that the basis cannot follow: only reading again brings it further. */
  get isStale(): boolean {
    return this.#stale || this.#txId === undefined;
  }

  /** The version that is the newest one at the basis; undefined for an object that is not known, or was not there. */
  at(id: ObjectId): KnownHead | undefined {
    return this.#heads.get(id);
  }

  /** The newest version that is known: what this process wrote after the basis, else the one at the basis. */
  newest(id: ObjectId): KnownHead | undefined {
    let found = this.#heads.get(id);
    for (const { heads } of this.#later.values()) {
      const head = heads.get(id);
      if (head !== undefined && (found === undefined || head.validTime >= found.validTime)) found = head;
    }
    return found;
  }

  /** Takes in what the database holds at a transaction, of all the ids that were asked for; ids without an entry are not there. */
  read(txId: number, asked: ReadonlySet<ObjectId>, heads: Heads): void {
    if (this.#txId !== undefined && txId < this.#txId) return;
    const before = [...this.#later].sort(([a], [b]) => a - b);
    this.#txId = txId;
    this.#heads = new Map(heads);
    this.#stale = false;
    this.#later.clear();
    for (const [id, commit] of before) {
      // What was asked for was read at a transaction that has it.
      const left = id > txId ? commit.heads : new Map([...commit.heads].filter(([object]) => !asked.has(object)));
      if (left.size > 0 || id > txId) this.#take(id, { ...commit, heads: left });
    }
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
  }

  #take(txId: number, commit: CommittedHeads): void {
    if (this.#txId === undefined || txId > this.#txId) {
      this.#later.set(txId, commit);
      return;
    }
    // It was read with the basis, or its object came into the session after that was read.
    const fresh = new Map([...commit.heads].filter(([id]) => !this.#heads.has(id)));
    if (fresh.size === 0) return;
    if (this.#own.cover(commit.readAt ?? txId, this.#txId)) for (const [id, head] of fresh) this.#heads.set(id, head);
    else {
      this.#later.set(txId, { ...commit, heads: fresh });
      this.#stale = true;
    }
  }

  #follow(): void {
    for (;;) {
      if (this.#txId === undefined || this.#stale) return;
      const next = this.#txId + 1;
      const commit = this.#later.get(next);
      if (commit === undefined) return;
      const { heads, readAt } = commit;
      // Somebody else may have written between what it was decided by and the basis.
      if (heads.size > 0 && readAt !== undefined && readAt < this.#txId && !this.#own.cover(readAt, this.#txId)) {
        this.#stale = true;
        return;
      }
      for (const [id, head] of heads) {
        if ((this.#heads.get(id)?.validTime ?? Number.NEGATIVE_INFINITY) <= head.validTime) this.#heads.set(id, head);
      }
      this.#later.delete(next);
      this.#txId = next;
    }
  }
}
