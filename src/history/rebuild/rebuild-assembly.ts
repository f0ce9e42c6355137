import pLimit from 'p-limit';
import type { EpochState } from '../../assembly/epoch/epoch-state.js';
import type { DisplayPaths } from '../../assembly/metadata.js';
import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { type ObjectId, type Sha256, systemPromptObjectId } from '../../objects/ids.js';
import type { Step } from '../../objects/step.js';
import { assemblyId } from '../../store/assemblies.js';
import type { LoggedWrites } from '../../store/logged-writes.js';
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
} from './rebuilt-assembly.js';
import { shownName, shownPaths } from './shown-names.js';

/** A record whose context is wanted. */
interface WantedRebuild {
  readonly proof: AssemblyProof;
  /** Whether everything that it is made of is wanted; else, of a request of an epoch, only what it added. */
  readonly whole: boolean;
}

/** What a record's context is read from. */
interface Source {
  newest(): Promise<ContextSnapshot>;
  at(basis: PinnedBasis): Promise<ContextSnapshot>;
  /** Whether everything is what it was at the record's basis. Else what is made of it has to be what the record says, or it counts for nothing. */
  readonly isExact: boolean;
}

/** Where contexts are made from: a store, or one as it would be with something hidden. */
export interface ContextStore {
  latest(): Promise<ContextSnapshot>;
  asOf(basis: PinnedBasis): Promise<ContextSnapshot>;
}

/**
 * Makes contexts that were handed out again, from the database alone (decision E7): what each was read at is read again, both clocks fixed. Keeps what
 * never changes, so that many contexts of a session cost little more than what differs between them.
 */
export class AssemblyRebuilder {
  readonly #store: ContextStore;
  readonly #reader = new ContextReader();
  readonly #chains = new EpochChains();
  /** By what a record says of them: the lines of a file that is shown alike are the same. */
  readonly #paths = new Map<string, DisplayPaths>();
  readonly #exact: Source = { newest: () => this.#newest(), at: (basis) => this.#snapshot(basis), isExact: true };
  #latest: Promise<ContextSnapshot> | undefined;

  /** `present` holds the newest of everything, where it was read already. */
  constructor(store: ContextStore, present?: ContextSnapshot) {
    this.#store = store;
    if (present !== undefined) this.#latest = Promise.resolve(present);
  }

  /** Takes in the steps of one session, which never change, from its first on: they need not be read again. */
  know(steps: readonly Step[]): void {
    this.#reader.know(steps);
  }

  /** The texts in parts of their own that contexts were made with so far, and an object that each belongs to. */
  get texts(): ReadonlyMap<Sha256, ObjectId> {
    return this.#reader.texts;
  }

  /**
   * The context of a record, made again.
   * @throws {HistoryError} `newer-renderer`, `not-yet` where the database does not hold what the record was made of at its basis
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
   * The contexts of some records of a session, made again, and what is made of each at once; in the order of the records. What all of them most likely show is read
   * first, at once; a context that is not, byte for byte, what its record says is read at its own basis. Several are read at a time, those of one epoch one after
   * another. Throws what `rebuild` and `use` throw, of several failures that of the earliest record.
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
   * Reads at once what some records of a session are made of. What is given back makes the context of one of them again, exactly as it stood at its basis, by what `writes`
   * tells of everything that was read; undefined where that is not, byte for byte, what was handed out, or fails: `rebuild` says why.
   */
  async readAtOnce(
    proofs: readonly AssemblyProof[],
    writes: LoggedWrites,
  ): Promise<(proof: AssemblyProof) => Promise<RebuiltAssembly | undefined>> {
    const source = await this.#foreseen(proofs, writes);
    return (proof) => this.#likely(proof, source);
  }

  /** What some records are most likely made of, read at once; undefined where that is not worth it, or fails: then each record says by itself what is wrong. */
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

  /** The context of a record made of what was foreseen; undefined where that is not what was handed out. */
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

  /** The context of a record as it would have been at another basis. */
  async at(proof: AssemblyProof, basis: PinnedBasis): Promise<RebuiltAssembly> {
    const before = await this.#shownBefore(proof);
    return rebuiltOf(proof, { ...(await this.#readAt({ proof, whole: true }, { basis, from: this.#exact })), before });
  }

  /** What the epoch of a record showed before it; undefined at its border, and outside of epochs. */
  async #shownBefore(proof: AssemblyProof): Promise<EpochState | undefined> {
    if (!isOfEpoch(proof)) return undefined;
    const { known, links } = await this.#chains.before(proof, () => this.#newest());
    // What a record was made of does not depend on those before it, so all are read at once.
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

  /** A context without a basis of its own: at one of those that its step gives. */
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

  /** What a record's context is made of; undefined where the record has no basis of its own. */
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
    if (proof.basis !== null && there.has(step + 1)) {
      throw new HistoryError(
        'other-steps',
        `at its basis session ${session} has step ${step + 1} already, which its record does not include`,
      );
    }
    return { context, basis };
  }

  /** What was shown ahead of its basis is named in the record; the steps are the session's own (decision 0010). */
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

  /** The newest versions of everything, read once and kept. */
  #newest(): Promise<ContextSnapshot> {
    this.#latest ??= this.#store.latest();
    return this.#latest.catch((error: unknown) => {
      this.#latest = undefined;
      throw error;
    });
  }

  /** The objects at a basis: once the present is known, everything before it is read without asking for a basis first. */
  async #snapshot(basis: PinnedBasis): Promise<ContextSnapshot> {
    const latest = await this.#newest();
    const known = latest.earlier(basis);
    if (known !== undefined) return known;
    // It was taken before that transaction.
    this.#latest = undefined;
    return (await this.#newest()).earlier(basis) ?? this.#store.asOf(basis);
  }

  /** Without a basis of its own: the transaction of its record, which came right after its steps, then that of its last step. */
  async #basesOfStep(proof: AssemblyProof): Promise<readonly PinnedBasis[]> {
    const { session, step } = proof;
    const id = assemblyId(proof);
    const endsAt = async (present: ContextSnapshot): Promise<readonly number[]> => {
      const [records, steps] = await Promise.all([present.times([id]), present.stepTimes(session, [step])]);
      return [records.get(id), steps.get(step)].flatMap((times) => (times === undefined ? [] : [times.txId]));
    };
    const known = await endsAt(await this.#newest());
    // What is kept may be from before it was written.
    const ends = known.length > 0 ? known : await endsAt(await this.#store.latest());
    // What its process knew was the newest, whatever clock had dated it.
    return [...new Set(ends)].map((txId) => ({ validTime: END_OF_TIME, txId }));
  }

  #notThere({ session, step }: AssemblyProof, basis?: PinnedBasis): HistoryError {
    const where = basis === undefined ? 'the database' : `the database, read ${basisText(basis)},`;
    return new HistoryError('not-yet', `${where} does not hold step ${step} of session ${session}`);
  }
}
