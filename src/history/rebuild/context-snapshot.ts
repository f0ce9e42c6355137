import type { ShownAhead } from '../../objects/assembly-proof.js';
import type { ObjectId } from '../../objects/ids.js';
import { type FilesystemSource, parseSource } from '../../objects/source.js';
import type { Step } from '../../objects/step.js';
import { fileStub, fileType } from '../../objects/versions.js';
import { StoreError } from '../../store/errors.js';
import { toStored } from '../../store/head.js';
import { type Lineage, ownerOf } from '../../store/lineage.js';
import type { LoggedWrites } from '../../store/logged-writes.js';
import type { PagedRange } from '../../store/read-steps.js';
import type { FoundVersion, Head } from '../../store/snapshot-rows.js';
import { stepId } from '../../store/step-part.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import { type ListingCall, listedSources } from './listed-sources.js';

/**
 * The part of a snapshot that contexts are read from. It comes from a store, or from a store with
 * some content hidden.
 */
export interface ContextSnapshot
  extends Pick<
    StoreSnapshot,
    | 'basis'
    | 'heads'
    | 'versionsOf'
    | 'steps'
    | 'lineage'
    | 'existingSteps'
    | 'knownCall'
    | 'historyOfHeads'
    | 'assemblies'
    | 'texts'
    | 'times'
    | 'stepTimes'
  > {
  /** Reads the sources of objects. Undefined if reading the heads is as fast. */
  readonly sourcesOf?: StoreSnapshot['sourcesOf'];
  earlier(basis: { readonly validTime: Date; readonly txId: number }): ContextSnapshot | undefined;
  stepsAlong(lineage: Lineage, range: PagedRange, later?: ContextSnapshot): Promise<readonly Step[]>;
}

/** Objects in their newest state, read together for many contexts. */
export interface ForeseenObjects {
  readonly present: ContextSnapshot;
  /** An id maps to undefined if no object has it. */
  readonly heads: ReadonlyMap<string, Head | undefined>;
  /** The checked versions of those heads whose texts a context shows. */
  readonly versions: ReadonlyMap<Head, FoundVersion>;
  /** When the objects were written, if known. */
  readonly writes: LoggedWrites | undefined;
}

/**
 * The objects as they probably were at a basis: the newest version of each object, if it was valid
 * by then. Only objects that have changed since are read.
 *
 * A version that was written after the basis, but with an earlier valid time, is used wrongly. So a
 * result counts only if it equals its record byte for byte. With `writes`, such versions are
 * recognised, and the basis is read instead.
 *
 * Without `at`, the basis is the newest state, so all objects were read ahead.
 */
export class ForeseenSnapshot implements ContextSnapshot {
  readonly #foreseen: ForeseenObjects;
  readonly #exact: ContextSnapshot;
  readonly #moment: number;

  constructor(foreseen: ForeseenObjects, at: ContextSnapshot = foreseen.present) {
    this.#foreseen = foreseen;
    this.#exact = at;
    this.#moment = at === foreseen.present ? Number.POSITIVE_INFINITY : at.basis.validTime.getTime();
  }

  get basis() {
    return this.#exact.basis;
  }

  async heads(ids: readonly string[]): Promise<ReadonlyMap<string, Head>> {
    const found = new Map<string, Head>();
    const { heads } = this.#foreseen;
    const others = ids.filter((id) => {
      const head = heads.get(id);
      const stands = heads.has(id) && this.#stood(id, head);
      if (stands && head !== undefined) found.set(id, head);
      return !stands;
    });
    if (others.length > 0) for (const [id, head] of await this.#exact.heads(others)) found.set(id, head);
    return found;
  }

  async versionsOf(heads: readonly Head[]): Promise<ReadonlyMap<ObjectId, FoundVersion>> {
    const found = new Map<ObjectId, FoundVersion>();
    const others = heads.filter((head) => {
      const known = this.#foreseen.versions.get(head);
      if (known !== undefined) found.set(known.version['xt/id'], known);
      return known === undefined;
    });
    if (others.length > 0) for (const [id, version] of await this.#exact.versionsOf(others)) found.set(id, version);
    return found;
  }

  earlier(...basis: Parameters<ContextSnapshot['earlier']>) {
    return this.#exact.earlier(...basis);
  }

  steps(...wanted: Parameters<ContextSnapshot['steps']>) {
    return this.#exact.steps(...wanted);
  }

  texts(...hashes: Parameters<ContextSnapshot['texts']>) {
    return this.#exact.texts(...hashes);
  }

  stepsAlong(...wanted: Parameters<ContextSnapshot['stepsAlong']>) {
    return this.#exact.stepsAlong(...wanted);
  }

  /** A lineage is the same at every basis that has the session. */
  lineage(...session: Parameters<ContextSnapshot['lineage']>) {
    return this.#foreseen.present.lineage(...session);
  }

  async existingSteps(lineage: Lineage, seqs: readonly number[]) {
    const { writes } = this.#foreseen;
    const { validTime, txId } = this.basis;
    if (writes === undefined || txId === undefined) return this.#exact.existingSteps(lineage, seqs);
    const there = new Set<number>();
    for (const seq of seqs) {
      const owner = ownerOf(lineage, seq);
      const isThere = owner === undefined ? false : writes.isThere(stepId(owner, seq), { validTime, txId });
      if (isThere === undefined) return this.#exact.existingSteps(lineage, seqs);
      if (isThere) there.add(seq);
    }
    return there;
  }

  knownCall(...id: Parameters<ContextSnapshot['knownCall']>) {
    return this.#exact.knownCall(...id);
  }

  historyOfHeads(...wanted: Parameters<ContextSnapshot['historyOfHeads']>) {
    return this.#exact.historyOfHeads(...wanted);
  }

  assemblies(...wanted: Parameters<ContextSnapshot['assemblies']>) {
    return this.#exact.assemblies(...wanted);
  }

  times(...ids: Parameters<ContextSnapshot['times']>) {
    return this.#exact.times(...ids);
  }

  stepTimes(...steps: Parameters<ContextSnapshot['stepTimes']>) {
    return this.#exact.stepTimes(...steps);
  }

  /**
   * Returns whether an object's current state is its state at the basis. An object that is absent
   * now counts as absent at the basis. With `writes`, the log must confirm it.
   */
  #stood(id: string, head: Head | undefined): boolean {
    if (this.#moment === Number.POSITIVE_INFINITY) return true;
    const { writes } = this.#foreseen;
    const { txId, validTime } = this.basis;
    const isThere = () =>
      writes === undefined || txId === undefined ? head !== undefined : writes.isThere(id, { validTime, txId });
    if (head === undefined) return writes === undefined || isThere() === false;
    // Every turn writes a session's head. Callers only need to know whether the session exists.
    if (head.document.type === 'session') return isThere() === true;
    return head.validTime.getTime() <= this.#moment && (writes === undefined || writes.isUnchanged(id, txId));
  }
}

/** The objects to search for stubs. */
export interface StubSearch {
  readonly ids: readonly ObjectId[];
  /** Objects that are shown in full. */
  readonly shown: ReadonlySet<ObjectId>;
  readonly listings: readonly ListingCall[];
}

/** Minimum number of objects for which stubs are read by their sources instead of their heads. */
const MANY_OBJECTS = 1_000;

/**
 * Returns the heads of stubs among objects that are not shown in full. A stub's line is derived
 * from its source. Sources that the outputs of `listings` name are not read.
 */
export async function readStubs(
  snapshot: ContextSnapshot,
  { ids, shown, listings }: StubSearch,
): Promise<ReadonlyMap<string, Head>> {
  const stubs = new Map<string, Head>();
  const { sourcesOf } = snapshot;
  if (ids.length < MANY_OBJECTS || sourcesOf === undefined) return stubs;
  const asked = ids.filter((one) => !shown.has(one));
  const known = await listedSources(
    { heads: (some) => snapshot.heads(some), versionsOf: (some) => snapshot.versionsOf(some), sourcesOf },
    listings,
    new Set(asked),
  );
  for (const [id, { source, isStub }] of await sourcesOf(asked, known)) {
    if (!isStub || source.type !== 'filesystem') continue;
    const { type, filesystemId, path } = source;
    const of = { type, filesystemId, path };
    const fields = { file_type: fileType(path), char_count: 0, file_hash: null, content_hash: null };
    const document: StoredDocument = { 'xt/id': id, type: 'file', source: of, ...fields };
    stubs.set(id, { document, marks: {}, validTime: snapshot.basis.validTime });
  }
  return stubs;
}

/**
 * Returns the version of an object that a context showed, by its hash. It is the version at a
 * snapshot, or an earlier one. A stub is derived from the object's source: it was never written if
 * the object already existed.
 *
 * @throws {StoreError} `missing-part` if no version has this hash
 */
export async function findShown(snapshot: ContextSnapshot, { id, object_hash, gone }: ShownAhead): Promise<Head> {
  const isShown = ({ document, marks }: Pick<Head, 'document' | 'marks'>): boolean =>
    document.object_hash === object_hash && marks.gone === gone;
  const now = (await snapshot.heads([id])).get(id);
  if (now !== undefined && isShown(now)) return now;
  const all = await snapshot.historyOfHeads(id);
  const found = all
    .flatMap(({ document, marks, validTime }) => (document === undefined ? [] : [{ document, marks, validTime }]))
    .findLast(isShown);
  if (found !== undefined) return found;
  if (now?.document.type === 'file' && gone === undefined) {
    const stub = fileStub(parseSource(now.document.source) as FilesystemSource);
    if (stub.object_hash === object_hash) return { document: toStored(stub).head, marks: {}, validTime: now.validTime };
  }
  throw new StoreError(
    'missing-part',
    `the version ${object_hash} of ${JSON.stringify(id)}, which was shown, is not in the database`,
  );
}
