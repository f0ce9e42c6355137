import pLimit from 'p-limit';
import type { EpochState } from '../../assembly/epoch/epoch-state.js';
import type { DisplayPaths } from '../../assembly/metadata.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { type ObjectId, type Sha256, systemPromptObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { assemblyId } from '../../store/assemblies.js';
import { StoreError } from '../../store/errors.js';
import type { LoggedWrites } from '../../store/logged-writes.js';
import { chunkListId } from '../../store/texts.js';
import { defined } from '../../values/defined.js';
import { END_OF_TIME } from '../../xtdb/transactions.js';
import { ContextReader, type WantedContext } from './context-reader.js';
import { type ContextSnapshot, type ForeseenObjects, ForeseenSnapshot } from './context-snapshot.js';
import { eachRecord, READ_AT_ONCE } from './each-record.js';
import { EpochChains, isOfEpoch, notedCalls, noteObjects } from './epoch-chain.js';
import { HistoryError } from './history-error.js';
import {
  basisText,
  type PinnedBasis,
  type ReadParts,
  type ReadRecord,
  type RebuiltAssembly,
  rebuiltOf,
  requireRenderer,
  shownName,
  shownPaths,
} from './rebuilt-assembly.js';

/** A record whose context is to be rebuilt. */
interface WantedRebuild {
  readonly proof: AssemblyProof;
  /** Whether to read the whole context. If false, a request of an epoch lacks earlier text. */
  readonly whole: boolean;
}

/** The snapshots from which a record's context is read. */
interface Source {
  newest(): Promise<ContextSnapshot>;
  at(basis: PinnedBasis): Promise<ContextSnapshot>;
  /**
   * Whether snapshots have exactly the state at the record's basis. If false, a result is valid
   * only if it equals the record.
   */
  readonly isExact: boolean;
}

/** The store that contexts are read from. It may hide some content. */
export interface ContextStore {
  latest(): Promise<ContextSnapshot>;
  asOf(basis: PinnedBasis): Promise<ContextSnapshot>;
}

/**
 * Rebuilds contexts with the database as the only source (decision E7). Reads each at its own
 * basis, with both clocks fixed. Caches immutable data, so another context of the same session
 * costs only its differences.
 */
export class AssemblyRebuilder {
  readonly #store: ContextStore;
  readonly #reader = new ContextReader({ usesListings: false });
  readonly #chains = new EpochChains();
  /**
   * Path displays by the mounts and folders of a record. Records that are equal in them share the
   * cached lines of files.
   */
  readonly #paths = new Map<string, DisplayPaths>();
  readonly #exact: Source = { newest: () => this.#newest(), at: (basis) => this.#snapshot(basis), isExact: true };
  #latest: Promise<ContextSnapshot> | undefined;

  /** `present` is a snapshot of the newest state, if the caller has read it. */
  constructor(store: ContextStore, present?: ContextSnapshot) {
    this.#store = store;
    if (present !== undefined) this.#latest = Promise.resolve(present);
  }

  /** Caches the steps of one session, which never change. They begin with its first step. */
  know(steps: readonly Step[]): void {
    this.#reader.know(steps);
  }

  /**
   * Hashes of the separately stored texts of all rebuilt contexts, each with an object that has it.
   */
  get texts(): ReadonlyMap<Sha256, ObjectId> {
    return this.#reader.texts;
  }

  /**
   * Rebuilds the context of a record.
   *
   * @throws {HistoryError} `newer-renderer`; `not-yet` if the database lacks the record's step at
   * its basis
   * @throws {StoreError} `missing-part`, `corrupt-part`
   * @throws {DocumentError} `hash-mismatch`
   * @throws {XtdbError}
   */
  async rebuild(proof: AssemblyProof): Promise<RebuiltAssembly> {
    requireRenderer(proof);
    const [before, read] = await Promise.all([
      this.#shownBefore(proof),
      this.#read({ proof, whole: true }, this.#exact),
    ]);
    return read === undefined ? this.#madeWhileAway(proof, before) : this.#made(proof, { ...read, before });
  }

  /**
   * Rebuilds the contexts of some records of a session and applies `use` to each. Returns the
   * results in the order of the records.
   *
   * First reads together the objects that the contexts probably show. A context that then differs
   * from its record is read again at its own basis. Works on several records at a time, but on
   * those of one epoch in order. Throws the errors of `rebuild` and `use`. If several fail, throws
   * the error of the earliest record.
   */
  async rebuildEach<T>(
    proofs: readonly AssemblyProof[],
    use: (rebuilt: RebuiltAssembly) => T | Promise<T>,
  ): Promise<readonly T[]> {
    const source = await this.#foreseen(proofs);
    const one = async (proof: AssemblyProof): Promise<T> =>
      use((await this.#likely(proof, source)) ?? (await this.rebuild(proof)));
    return eachRecord(proofs, one);
  }

  /**
   * Reads together the objects of some records of a session. Returns a function that rebuilds the
   * context of one of these records. `writes` shows which objects have changed since a basis.
   *
   * The function returns undefined if the result differs from the record or cannot be made.
   * `rebuild` then finds the reason.
   */
  async readAtOnce(
    proofs: readonly AssemblyProof[],
    writes: LoggedWrites,
  ): Promise<(proof: AssemblyProof) => Promise<RebuiltAssembly | undefined>> {
    const source = await this.#foreseen(proofs, writes);
    return (proof) => this.#likely(proof, source);
  }

  /**
   * Reads together the objects that some records probably show. Undefined for a single record or if
   * the read fails. Each record's own read then reports its error.
   */
  async #foreseen(proofs: readonly AssemblyProof[], writes?: LoggedWrites): Promise<Source | undefined> {
    if (proofs.length < 2) return undefined;
    let objects: ForeseenObjects;
    try {
      const wanted = proofs.map((proof) => {
        const { session, step, basis, ahead: shown = [] } = proof;
        return { session, step, paths: this.#pathsOf(proof), moment: basis?.validTime, shown };
      });
      objects = await this.#reader.foresee(await this.#newest(), wanted, writes);
    } catch {
      return undefined;
    }
    const present = new ForeseenSnapshot(objects);
    return {
      newest: async () => present,
      at: async (basis) => new ForeseenSnapshot(objects, await this.#snapshot(basis)),
      isExact: writes !== undefined,
    };
  }

  /**
   * Rebuilds a context from objects that were read ahead. Undefined if it differs from its record.
   */
  async #likely(proof: AssemblyProof, source: Source | undefined): Promise<RebuiltAssembly | undefined> {
    if (source === undefined) return undefined;
    try {
      const [before, read] = await Promise.all([this.#shownBefore(proof), this.#read({ proof, whole: true }, source)]);
      const rebuilt = read === undefined ? undefined : rebuiltOf(proof, { ...read, before });
      return rebuilt?.equal === true ? this.#kept(rebuilt) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Returns the context of a record as it would be at another basis. */
  async at(proof: AssemblyProof, basis: PinnedBasis): Promise<RebuiltAssembly> {
    const before = await this.#shownBefore(proof);
    return rebuiltOf(proof, { ...(await this.#readAt({ proof, whole: true }, { basis, from: this.#exact })), before });
  }

  /**
   * Returns the texts that a record's epoch had shown before its request. Undefined for an epoch's
   * first request and for a record without an epoch.
   */
  async #shownBefore(proof: AssemblyProof): Promise<EpochState | undefined> {
    if (!isOfEpoch(proof)) return undefined;
    const { known, links } = await this.#chains.before(proof, () => this.#newest());
    // The data of a record does not depend on earlier records, so all records are read together.
    const atOnce = pLimit(READ_AT_ONCE);
    const reads = await Promise.all(
      links.map((link) =>
        atOnce(() => this.#read({ proof: link, whole: link.epoch.previous === undefined }, this.#exact)),
      ),
    );
    let state = known;
    for (const [i, link] of links.entries()) {
      const read = reads[i];
      const rebuilt =
        read === undefined ? await this.#madeWhileAway(link, state) : this.#made(link, { ...read, before: state });
      state = rebuilt.epoch;
    }
    return state;
  }

  #made(proof: AssemblyProof, parts: ReadParts): RebuiltAssembly {
    return this.#kept(rebuiltOf(proof, parts));
  }

  #kept(rebuilt: RebuiltAssembly): RebuiltAssembly {
    const { proof, epoch } = rebuilt;
    if (isOfEpoch(proof) && epoch !== undefined) this.#chains.keep(proof, epoch);
    return rebuilt;
  }

  /** Rebuilds a context whose record has no basis, at one of the bases that its step suggests. */
  async #madeWhileAway(proof: AssemblyProof, before: EpochState | undefined): Promise<RebuiltAssembly> {
    let first: RebuiltAssembly | undefined;
    for (const basis of await this.#basesOfStep(proof)) {
      const rebuilt = this.#made(proof, {
        ...(await this.#readAt({ proof, whole: true }, { basis, from: this.#exact })),
        before,
      });
      if (rebuilt.equal) return rebuilt;
      first ??= rebuilt;
    }
    if (first === undefined) throw this.#notThere(proof);
    return first;
  }

  /** Reads the data of a record's context. Undefined if the record has no basis. */
  async #read(wanted: WantedRebuild, from: Source): Promise<ReadRecord | undefined> {
    const { ahead, basis } = wanted.proof;
    if (ahead !== undefined) return this.#readAhead(wanted, from);
    return basis === null
      ? undefined
      : this.#readAt(wanted, { basis: { validTime: new Date(basis.validTime), txId: basis.txId }, from });
  }

  async #readAt(
    wanted: WantedRebuild,
    { basis, from }: { readonly basis: PinnedBasis; readonly from: Source },
  ): Promise<ReadRecord> {
    const { proof } = wanted;
    const { session, step } = proof;
    const snapshot = await from.at(basis);
    const [context, there] = await Promise.all([
      this.#reader.read(snapshot, this.#wantedContext(wanted), await from.newest()),
      from.isExact ? this.#reader.existingSteps(snapshot, session, [step, step + 1]) : new Set([step]),
    ]);
    if (context === undefined || (step > 0 && !there.has(step))) throw this.#notThere(proof, basis);
    // A gateway's request may have been stored after its basis, so its body is read from the newest
    // state.
    if (proof.sent !== undefined) return { context, basis, body: await this.#body(proof, await from.newest()) };
    if (proof.basis !== null && there.has(step + 1)) {
      throw new HistoryError(
        'other-steps',
        `the database at the record's basis already has step ${step + 1} of session ${session}, which the record ` +
          'does not include',
      );
    }
    return { context, basis };
  }

  /** Reads the body of a request that a gateway forwarded. It was stored with its record. */
  async #body({ session, step, sha256 }: AssemblyProof, present: ContextSnapshot): Promise<string> {
    const body = (await present.texts([sha256])).get(sha256);
    if (body !== undefined) return body;
    throw new StoreError(
      'missing-part',
      `the body ${chunkListId(sha256)} of the request at step ${step} of session ${session} is not in the database`,
    );
  }

  /**
   * Reads a context with versions newer than its basis. The record names these versions, and the
   * steps come from the session (decision 0010).
   */
  async #readAhead(wanted: WantedRebuild, from: Source): Promise<ReadRecord> {
    const { proof } = wanted;
    const { session, step, basis, ahead: shown = [], rescuedFrom, at } = proof;
    let present = await from.newest();
    if (from.isExact && step > 0 && !(await this.#reader.existingSteps(present, session, [step])).has(step)) {
      this.#latest = undefined;
      present = await from.newest();
    }
    const pinned =
      basis === null ? undefined : await from.at({ validTime: new Date(basis.validTime), txId: basis.txId });
    const of = { basis: pinned, present, shown, prompt: systemPromptObjectId(rescuedFrom ?? session) };
    const context = await this.#reader.readAhead(this.#wantedContext(wanted), of);
    if (context === undefined) throw this.#notThere(proof);
    return { context, basis: { validTime: new Date(at), txId: basis?.txId ?? present.basis.txId ?? 0 } };
  }

  #pathsOf({ mounts, folders }: AssemblyProof): DisplayPaths {
    const key = JSON.stringify([mounts, folders]);
    const paths = this.#paths.get(key) ?? shownPaths(defined({ mounts, folders }));
    this.#paths.set(key, paths);
    return paths;
  }

  #wantedContext({ proof, whole }: WantedRebuild): WantedContext {
    const { session, step } = proof;
    const wanted = { session, step, paths: this.#pathsOf(proof) };
    if (whole || !isOfEpoch(proof)) return wanted;
    const rename = shownName(session, proof);
    return {
      ...wanted,
      objects: (state) => {
        const stored = new Map(state.sets.index.map((id) => [rename(id), id]));
        const { index, active } = noteObjects(proof);
        const storedIds = (ids: readonly ObjectId[]): readonly ObjectId[] => ids.flatMap((id) => stored.get(id) ?? []);
        return { index: [...storedIds(index), ...notedCalls(proof, state)], active: storedIds(active) };
      },
    };
  }

  /** Returns a snapshot of the newest state, read once and cached. */
  #newest(): Promise<ContextSnapshot> {
    this.#latest ??= this.#store.latest();
    return this.#latest.catch((error: unknown) => {
      this.#latest = undefined;
      throw error;
    });
  }

  /**
   * Returns a snapshot of a basis. Derives it from the newest snapshot if possible, which saves a
   * request.
   */
  async #snapshot(basis: PinnedBasis): Promise<ContextSnapshot> {
    const latest = await this.#newest();
    const known = latest.earlier(basis);
    if (known !== undefined) return known;
    // The cached snapshot may be older than that transaction.
    this.#latest = undefined;
    return (await this.#newest()).earlier(basis) ?? this.#store.asOf(basis);
  }

  /**
   * Returns possible bases for a record without one: the transaction of the record, which directly
   * follows its steps, then the transaction of its last step.
   */
  async #basesOfStep(proof: AssemblyProof): Promise<readonly PinnedBasis[]> {
    const { session, step } = proof;
    const id = assemblyId(proof);
    const endsAt = async (present: ContextSnapshot): Promise<readonly number[]> => {
      const [records, steps] = await Promise.all([present.times([id]), present.stepTimes(session, [step])]);
      return [records.get(id), steps.get(step)].flatMap((times) => (times === undefined ? [] : [times.txId]));
    };
    const known = await endsAt(await this.#newest());
    // The cached snapshot may be older than the record.
    const ends = known.length > 0 ? known : await endsAt(await this.#store.latest());
    // The process saw its own newest versions, including those with a valid time in the future.
    return [...new Set(ends)].map((txId) => ({ validTime: END_OF_TIME, txId }));
  }

  #notThere({ session, step }: AssemblyProof, basis?: PinnedBasis): HistoryError {
    const where = basis === undefined ? 'the database' : `the database, read ${basisText(basis)},`;
    return new HistoryError('not-yet', `${where} does not hold step ${step} of session ${session}`);
  }
}
