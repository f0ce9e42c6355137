import { metadataOf } from '../../assembly/metadata.js';
import type { ShownAhead } from '../../objects/assembly-proof.js';
import { type ObjectId, type Sha256, systemPromptObjectId } from '../../objects/ids.js';
import { systemPromptVersion } from '../../objects/versions.js';
import { withinLimit } from '../../process/within-limit.js';
import type { SessionState } from '../../session/session-state.js';
import type { ObjectStore, StoredPut } from '../../store/object-store.js';
import type { Head } from '../../store/snapshot-rows.js';
import type { FileAccess } from '../file-access.js';
import { TIME_LIMITS } from '../time-limits.js';
import { type HeadsReading, type KnownHead, KnownHeads } from './known-heads.js';
import type { KnownVersions, MarkedVersion, WrittenObjects } from './known-versions.js';
import type { MetadataCache } from './metadata-cache.js';

/** The parts of a context made without waiting for a transaction. */
export interface OptimisticContext {
  readonly heads: ReadonlyMap<ObjectId, KnownHead>;
  /** The contents of the active objects. */
  readonly versions: ReadonlyMap<ObjectId, MarkedVersion>;
  /**
   * The transaction at which every object that is not in `ahead` had the shown version. Undefined
   * if nothing was read yet.
   */
  readonly basis: number | undefined;
  readonly ahead: readonly ShownAhead[];
  /** How far the context is behind other writers; see `AssemblyProof`. */
  readonly behind: number | null | undefined;
}

/** The session of a view, as this process holds it. */
export interface ViewedSession {
  readonly state: SessionState;
  readonly prompt: string | null;
}

/** The dependencies of a view. */
export interface OptimisticViewOptions {
  readonly store: ObjectStore;
  readonly files: FileAccess;
  readonly metadata: MetadataCache;
  readonly versions: KnownVersions;
  readonly session: () => ViewedSession;
  /** Set if no other process writes to the database. */
  readonly isSole: boolean;
  /** Returns whether the database is known to be down. */
  readonly isAway: () => boolean;
  /** Waits until the session's acknowledged steps are delivered, or until the timeout. */
  readonly stepsDelivered: (limitMs: number) => Promise<unknown>;
  /** Waits until file observations without a session are delivered, or until the timeout. */
  readonly filesDelivered: (limitMs: number) => Promise<unknown>;
}

/** The parts of a committed write that a view applies, with its objects. */
export interface CommittedWrite {
  readonly write: { readonly step?: unknown; readonly heads: readonly StoredPut[]; readonly at: number };
  readonly result: WrittenObjects;
}

/**
 * The result of the check for other writers. If others wrote, `reading` is the running read of
 * their writes.
 */
interface ForeignWrites {
  /** The database's last transaction. Undefined if it has none, null if it did not answer. */
  readonly latest: number | null | undefined;
  readonly reading: Promise<void> | undefined;
}

const NO_ANSWER: ForeignWrites = { latest: null, reading: undefined };

/** The basis of a database without transactions. */
const BEFORE_FIRST = -1;

/**
 * A session's view of the database that waits for none of its own transactions (decision 0010). It
 * holds the newest versions at a transaction, and the journaled versions in delivery. Before each
 * context it checks with one short query whether others wrote, and reads again only if they did.
 * The owner calls `wrote` for each stored transaction.
 */
export class OptimisticView {
  readonly #options: OptimisticViewOptions;
  readonly #known: KnownHeads;
  #answer: Promise<ForeignWrites> | undefined;
  #askedAt = 0;
  #latest: Promise<number | undefined> | undefined;
  #reading: Promise<void> | undefined;

  constructor(options: OptimisticViewOptions) {
    this.#options = options;
    const { session, store } = options;
    const isWanted = (id: ObjectId): boolean =>
      session().state.has(id) || id === systemPromptObjectId(session().state.id);
    this.#known = new KnownHeads(store.writes.own, isWanted);
  }

  /**
   * Starts the check for other writers. The next context waits briefly for the result. Never
   * rejects.
   */
  refresh(): Promise<ForeignWrites> {
    const now = performance.now();
    if (this.#answer !== undefined && now - this.#askedAt < TIME_LIMITS.foreignWritesFresh) return this.#answer;
    this.#askedAt = now;
    this.#answer = this.#ask().catch(() => NO_ANSWER);
    return this.#answer;
  }

  /**
   * Returns the database's last transaction from the running refresh. Without a recent refresh,
   * queries the database.
   */
  latest(): Promise<number | undefined> {
    const isFresh = performance.now() - this.#askedAt < TIME_LIMITS.foreignWritesFresh;
    return (isFresh ? this.#latest : undefined) ?? this.#options.store.latestTransaction();
  }

  /** Returns the parts of a context. Undefined if a part is unknown. */
  async context(): Promise<OptimisticContext | undefined> {
    const latest = await this.#catchUp();
    const { state, prompt } = this.#options.session();
    const { index, active } = state.sets;
    const basis = this.#known.basis === BEFORE_FIRST ? undefined : this.#known.basis;
    const heads = new Map<ObjectId, KnownHead>();
    const { object_hash } = systemPromptVersion(state.id, prompt);
    const ahead: ShownAhead[] = [...this.#named(systemPromptObjectId(state.id), { hash: object_hash, gone: false })];
    for (const id of index) {
      const head = this.#shown(id);
      if (head === undefined) return undefined;
      heads.set(id, head);
      if (head.metadata?.type === 'file') ahead.push(...this.#named(id, head));
    }
    const versions = await this.#activeVersions(active, heads, basis);
    return versions === undefined ? undefined : { heads, versions, basis, ahead, behind: this.#behind(latest) };
  }

  /**
   * Applies the writes of a stored transaction. `txId` is undefined if the database had them
   * already.
   */
  wrote(writes: readonly CommittedWrite[], txId: number | undefined): void {
    if (txId === undefined && writes.every(({ write }) => write.step === undefined)) return;
    const found = new Map<ObjectId, KnownHead>();
    const readAt: number[] = [];
    for (const { write, result } of writes) {
      for (const [id, head] of this.#headsOf(write, result)) found.set(id, head);
      const { files, observed, observedAt } = result;
      if (files.length + observed.length > 0 && observedAt !== undefined) readAt.push(observedAt);
    }
    this.#known.wrote(txId, { heads: found, readAt: readAt.length === 0 ? undefined : Math.min(...readAt) });
  }

  #headsOf(
    { heads, at }: CommittedWrite['write'],
    { written, files, observed }: WrittenObjects,
  ): ReadonlyMap<ObjectId, KnownHead> {
    const times = new Map(files.map(({ version, validTime }) => [version['xt/id'], validTime]));
    const found = new Map<ObjectId, KnownHead>();
    for (const head of observed) found.set(head.document['xt/id'] as ObjectId, this.#headOf(head));
    for (const version of written) {
      const id = version.version['xt/id'];
      found.set(id, this.#headOfVersion(version, (times.get(id) ?? new Date(at)).getTime()));
    }
    for (const { head, validTime } of heads) {
      if (head.type !== 'system_prompt') continue;
      const [hash, since] = [head.object_hash as Sha256, validTime ?? new Date(at)];
      found.set(head['xt/id'] as ObjectId, { hash, gone: false, validTime: since.getTime(), metadata: undefined });
    }
    return found;
  }

  /** Returns how far the view is behind the writes of others in the database. */
  #behind(latest: ForeignWrites['latest']): number | null | undefined {
    if (this.#options.isSole) return undefined;
    if (latest === null || latest === undefined) return latest;
    const basis = this.#known.basis ?? BEFORE_FIRST;
    return basis >= latest || this.#options.store.writes.own.coverSent(basis, latest) ? undefined : latest;
  }

  /**
   * Waits, within the time limits, until the view has other clients' writes. Returns the last
   * transaction that the check found.
   */
  async #catchUp(): Promise<ForeignWrites['latest']> {
    const { versions, session, isAway, stepsDelivered, filesDelivered } = this.#options;
    const { latest, reading } = await withinLimit(this.refresh(), TIME_LIMITS.foreignWrites, () => NO_ANSWER);
    this.#answer = undefined;
    this.#latest = undefined;
    const { index } = session().state.sets;
    const isStub = (id: ObjectId): boolean => {
      const pending = versions.journaled(id);
      return pending?.version.type === 'file' && pending.version.file_hash === null && pending.marks.gone !== true;
    };
    const limit = TIME_LIMITS.optimisticRead;
    const waits: Promise<unknown>[] = [filesDelivered(limit)];
    if (reading !== undefined) waits.push(reading);
    // Only the database knows whether a mentioned file has been read by another client.
    if (!isAway() && index.some(isStub)) waits.push(stepsDelivered(limit));
    await withinLimit(Promise.all(waits), limit, () => []);
    if (!isAway() && session().state.sets.index.some((id) => this.#shown(id) === undefined)) {
      await withinLimit(this.#read(), limit, () => undefined).catch(() => undefined);
    }
    return latest;
  }

  async #ask(): Promise<ForeignWrites> {
    const { store } = this.#options;
    const before = this.#known.basis;
    this.#latest = store.latestTransaction();
    const latest = await this.#latest;
    if (
      before !== undefined &&
      !this.#known.isStale &&
      (latest === undefined || store.writes.own.coverSent(before, latest))
    ) {
      // The view is complete, so no caller waits for this read.
      if (this.#known.isBehind) this.#read().catch(() => undefined);
      return { latest, reading: undefined };
    }
    return { latest, reading: this.#readTo(latest ?? BEFORE_FIRST).catch(() => undefined) };
  }

  /** Reads until the basis is at or after a transaction. */
  async #readTo(txId: number): Promise<void> {
    await this.#read();
    // A running read may have begun before that transaction.
    if ((this.#known.basis ?? BEFORE_FIRST) < txId) await this.#read();
  }

  #read(): Promise<void> {
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = undefined;
    });
    return this.#reading;
  }

  async #readNow(): Promise<void> {
    const { store, metadata, session } = this.#options;
    const { state } = session();
    const asked = new Set<ObjectId>([...state.sets.index, systemPromptObjectId(state.id)]);
    const before = this.#known.reading;
    const txId = (await store.latestTransaction()) ?? BEFORE_FIRST;
    const unchanged =
      before === undefined ? new Map<ObjectId, KnownHead>() : await this.#unchanged(before, asked, txId);
    const unread = [...asked].filter((id) => !unchanged.has(id));
    const found = txId === BEFORE_FIRST ? new Map<string, Head>() : await store.newestAt(txId).heads(unread);
    for (const { document, marks, validTime } of found.values()) {
      metadata.learn(document, marks, txId);
      // Another writer's clock may be ahead, so our reads must include its time.
      store.noteTime(validTime.getTime());
    }
    const heads = new Map(unchanged);
    for (const [id, head] of found) heads.set(id as ObjectId, this.#headOf(head));
    this.#known.read({ txId, asked, heads });
  }

  /**
   * Returns the versions last read of those objects that have not changed up to a transaction.
   * Empty if the changes are unknown.
   */
  async #unchanged(
    { txId: before, asked: known, heads }: HeadsReading,
    asked: ReadonlySet<ObjectId>,
    txId: number,
  ): Promise<ReadonlyMap<ObjectId, KnownHead>> {
    const written =
      before === BEFORE_FIRST ? undefined : await this.#options.store.writtenBetween([...asked], before, txId);
    if (written === undefined) return new Map();
    return new Map(
      [...asked].flatMap((id) => {
        const head = known.has(id) && !written.has(id) ? heads.get(id) : undefined;
        return head === undefined ? [] : [[id, head] as const];
      }),
    );
  }

  /** Returns the shown version of an object: an acknowledged one, or else the newest known one. */
  #shown(id: ObjectId): KnownHead | undefined {
    const acknowledged = this.#options.versions.journaled(id);
    return acknowledged === undefined
      ? this.#known.newest(id)
      : this.#headOfVersion(acknowledged, Number.POSITIVE_INFINITY);
  }

  #named(id: ObjectId, { hash, gone }: Pick<KnownHead, 'hash' | 'gone'>): readonly ShownAhead[] {
    const there = this.#known.at(id);
    if (there?.hash === hash && there.gone === gone) return [];
    return [{ id, object_hash: hash, ...(gone ? { gone } : {}) }];
  }

  /**
   * Returns the versions that the heads name, from memory or from a read at the basis. Undefined if
   * one is in neither.
   */
  async #activeVersions(
    ids: readonly ObjectId[],
    heads: ReadonlyMap<ObjectId, KnownHead>,
    basis: number | undefined,
  ): Promise<ReadonlyMap<ObjectId, MarkedVersion> | undefined> {
    const { versions, store } = this.#options;
    const isWanted = (id: ObjectId, found: MarkedVersion | undefined): found is MarkedVersion => {
      const head = heads.get(id);
      return found?.version.object_hash === head?.hash && (found?.marks.gone === true) === head?.gone;
    };
    const active = new Map<ObjectId, MarkedVersion>();
    const missing: ObjectId[] = [];
    for (const id of ids) {
      const found = [versions.journaled(id), versions.recent(id)].find((one) => isWanted(id, one));
      if (found === undefined) missing.push(id);
      else active.set(id, found);
    }
    if (missing.length === 0) return active;
    if (basis === undefined) return undefined;
    for (const [id, found] of await store.newestAt(basis).getMany(missing)) {
      if (!isWanted(id, found)) return undefined;
      versions.loaded(found, basis);
      active.set(id, found);
    }
    return active.size === ids.length ? active : undefined;
  }

  #headOf({ document, marks, validTime }: Head): KnownHead {
    const metadata = metadataOf(document, marks, this.#options.files);
    return {
      hash: document.object_hash as Sha256,
      gone: marks.gone === true,
      validTime: validTime.getTime(),
      metadata,
    };
  }

  #headOfVersion({ version, marks }: MarkedVersion, validTime: number): KnownHead {
    const metadata = metadataOf(version, marks, this.#options.files);
    return { hash: version.object_hash, gone: marks.gone === true, validTime, metadata };
  }
}
