import type { EdnValue } from '../edn/values.js';
import type { AssemblyProof } from '../objects/assembly-proof.js';
import type { ContextRecord, RecordKind } from '../objects/context-record.js';
import { type ObjectId, type SessionId, type Sha256, sessionObjectId } from '../objects/ids.js';
import type { ObjectVersion } from '../objects/seal.js';
import type { Source } from '../objects/source.js';
import type { Step } from '../objects/step.js';
import { defined } from '../values/defined.js';
import { askOnce } from '../values/promises.js';
import type { DatalogQuery } from '../xtdb/datalog.js';
import type { Basis, DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { EntityNames } from '../xtdb/entity-names.js';
import type { RequestOptions } from '../xtdb/requests.js';
import { readAssemblies, type WantedRecords } from './assemblies.js';
import { readRecords, type WantedContextRecords } from './context-records.js';
import {
  contentPartHash,
  foldedChat,
  foldedSession,
  fromStored,
  isFolded,
  isHead,
  marksOf,
  sessionOfFolded,
} from './head.js';
import { type Lineage, lineageFrom, type StepRange, withoutParent } from './lineage.js';
import {
  existingIds,
  fileSources,
  headsWithTimes,
  inlineContents,
  longContents,
  namedSources,
  objectIdsFrom,
  readTimes,
  type VersionTimes,
} from './queries.js';
import { PageReader } from './read-pages.js';
import { type FoundSets, type PagedRange, StepReader, type StepTimes } from './read-steps.js';
import { SessionDocuments } from './session-documents.js';
import { runningSessions, type StoredFork, storedForks, storedSessions } from './session-rows.js';
import type { SessionTable } from './session-table.js';
import type { FoundVersion, Head, HistoryHead, StoredSession } from './snapshot-rows.js';
import type { KnownCall, KnownCalls } from './step-page.js';
import { type TextCache, type TextDamage, TextReader, type VersionText } from './texts.js';

/** Caches of a store that serve every basis. */
export interface KnownOfStore {
  readonly cache: TextCache;
  readonly calls: KnownCalls;
  readonly sessions?: SessionTable;
}

/** Number of steps per request after the last step that a head includes. */
const RUNNING_STEPS = 64;

/**
 * The objects at one basis: SSOT documents with exactly their keys, every hash checked (decision
 * G1). All reads of one snapshot see the same valid time and transaction. A snapshot never writes.
 */
export class StoreSnapshot {
  /** Pages of steps (decision 0015). */
  readonly pages: PageReader;
  readonly documents: SessionDocuments;
  readonly #db: DbSnapshot;
  readonly #known: KnownOfStore;
  readonly #texts: TextReader;
  readonly #steps: StepReader;
  /** A lineage and the head of a session never change at one basis. */
  readonly #lineages = new Map<SessionId, Promise<Lineage | undefined>>();
  readonly #sessionHeads = new Map<SessionId, Promise<Head | undefined>>();

  /** Reads texts from `texts`, and everything else from `db`. */
  constructor(db: DbSnapshot, known: KnownOfStore, texts = db) {
    this.#db = db;
    this.#known = known;
    this.#texts = new TextReader(texts, known.cache);
    this.pages = new PageReader(db);
    this.documents = new SessionDocuments(db);
    this.#steps = new StepReader(db, this.#texts, { calls: known.calls, pages: this.pages });
  }

  get basis(): Basis {
    return this.#db.basis;
  }

  /**
   * Returns the same objects with a cache of documents, texts excluded. Meant for a question that
   * reads a whole session several times.
   */
  remembering(): StoreSnapshot {
    return new StoreSnapshot(this.#db.remembering(), this.#known, this.#db);
  }

  /** Returns the objects at an earlier transaction without a request. Undefined for a later one. */
  earlier({ validTime, txId }: { readonly validTime: Date; readonly txId: number }): StoreSnapshot | undefined {
    const db = this.#db.earlier(validTime, txId);
    return db === undefined ? undefined : new StoreSnapshot(db, this.#known);
  }

  /** Returns the same objects, some of them under other names. */
  named = (names: EntityNames): StoreSnapshot => new StoreSnapshot(this.#db.named(names), this.#known);

  /** Returns the heads of many objects with one query. Unknown ids are absent. */
  async heads(ids: readonly string[]): Promise<ReadonlyMap<string, Head>> {
    const heads = new Map<string, Head>();
    if (ids.length === 0) return heads;
    for (const { document, validTime } of await headsWithTimes(this.#db, ids)) {
      if (isHead(document)) heads.set(String(document['xt/id']), { document, marks: marksOf(document), validTime });
    }
    return heads;
  }

  /** Returns the head of a session, read once. Undefined if the database does not hold it. */
  sessionHead(session: SessionId): Promise<Head | undefined> {
    const id = sessionObjectId(session);
    return askOnce(this.#sessionHeads, session, async () => (await this.heads([id])).get(id));
  }

  /** Reads the heads of many sessions with one query, so that `sessionHead` need not. */
  async readSessionHeads(sessions: readonly SessionId[]): Promise<void> {
    const heads = await this.heads(sessions.map(sessionObjectId));
    for (const id of sessions) this.#sessionHeads.set(id, Promise.resolve(heads.get(sessionObjectId(id))));
  }

  /** Returns many objects in full. Unknown ids are absent. */
  async getMany(ids: readonly string[]): Promise<ReadonlyMap<ObjectId, FoundVersion>> {
    const found = new Map<ObjectId, FoundVersion>();
    if (ids.length === 0) return found;
    const documents = [...(await this.#db.entities(ids)).values()].filter(isHead);
    const texts = await this.#contents(documents);
    for (const document of documents) {
      const version = isFolded(document)
        ? await this.#foldedVersion(document)
        : fromStored(document, textOf(document, texts));
      found.set(version['xt/id'], { version, marks: marksOf(document) });
    }
    return found;
  }

  /**
   * Returns the versions of heads of files, calls and prompts that were read at this basis. Reads
   * their texts and checks every hash.
   */
  async versionsOf(heads: readonly Head[]): Promise<ReadonlyMap<ObjectId, FoundVersion>> {
    return new Map((await this.versionsIn(heads)).map((found) => [found.version['xt/id'], found]));
  }

  /** Returns the versions like `versionsOf`, but one result for each head. */
  async versionsIn(heads: readonly Pick<Head, 'document' | 'marks'>[]): Promise<readonly FoundVersion[]> {
    const texts = await this.#contents(heads.map(({ document }) => document));
    return heads.map(({ document, marks }) => ({ version: fromStored(document, textOf(document, texts)), marks }));
  }

  /** Returns one object in full. Undefined if the database does not know the id at this basis. */
  async get(id: string): Promise<FoundVersion | undefined> {
    return (await this.getMany([id])).get(id as ObjectId);
  }

  /**
   * Returns the heads of an object's versions up to this basis, oldest first, or only the newest
   * ones. Reads neither texts nor steps and checks no hash. Empty for an unknown id.
   */
  async historyOfHeads(id: string, newest = Number.POSITIVE_INFINITY): Promise<readonly HistoryHead[]> {
    const times = Number.isFinite(newest) ? await this.versions(id) : [];
    const from = times.at(-newest)?.validTime;
    const entries = (await this.#db.history(id, { withDocs: true, ...defined({ from }) })).slice(
      Number.isFinite(newest) ? -newest : 0,
    );
    const before = Math.max(0, times.length - entries.length);
    return entries.map(({ document, validTime, txTime, txId }, i) => {
      const head = document !== undefined && isHead(document) ? document : undefined;
      return {
        number: before + i + 1,
        document: head,
        marks: head === undefined ? {} : marksOf(head),
        validTime,
        txTime,
        txId,
      };
    });
  }

  /** Returns one step of a session. Undefined if it is not written. */
  step(session: SessionId, seq: number): Promise<Step | undefined> {
    return this.#steps.step(session, seq);
  }

  /**
   * Returns the steps of a session, all or a range, in order, a fork's shared ones first (decision
   * F2). Empty for an unknown session. A range is read from individual parts, never from pages.
   */
  async steps(session: SessionId, range: StepRange = {}): Promise<readonly Step[]> {
    const lineage = await this.#lineageOf(session);
    return range.first !== undefined || range.last !== undefined
      ? this.#steps.steps(lineage, range)
      : this.#stepsFrom(lineage, { first: 1, upto: await this.#uptoOf(session) });
  }

  /**
   * Returns the lineage of a session (decision F2). It is the same at every basis with the session.
   * Undefined if the session is absent.
   */
  lineage(session: SessionId): Promise<Lineage | undefined> {
    return askOnce(this.#lineages, session, async () => {
      const head = await this.sessionHead(session);
      return head === undefined ? undefined : lineageFrom(this.#db, session, head.marks.parent);
    });
  }

  /**
   * Returns the steps of a range for a known lineage. `later` may have pages that are missing at
   * this basis. This basis must have every step of the range.
   */
  stepsAlong(lineage: Lineage, range: PagedRange, later: StoreSnapshot = this): Promise<readonly Step[]> {
    return this.#steps.along(lineage, range, later.pages);
  }

  /**
   * Returns the steps from `first` to the last, for a known lineage whose head includes steps up to
   * `upto`. Reads the steps by id. After `upto`, it asks for as many steps at a time as a running
   * turn typically has.
   */
  async stepsFrom(
    lineage: Lineage,
    { first, upto }: { readonly first: number; readonly upto: number },
  ): Promise<readonly Step[]> {
    const near = Math.max(upto, first - 1) + RUNNING_STEPS;
    const steps = await this.stepsAlong(lineage, { first, last: near, paged: upto });
    if (steps.at(-1)?.seq !== near) return steps;
    return [...steps, ...(await this.stepsAlong(lineage, { first: near + 1, last: Number.MAX_SAFE_INTEGER }))];
  }

  /** Returns data for a call's pool line from a cached page. Valid at every basis with its step. */
  knownCall(id: ObjectId): KnownCall | undefined {
    return this.#known.calls.get(id);
  }

  /** Returns the given steps that the database holds at this basis. */
  existingSteps(lineage: Lineage, seqs: readonly number[]): Promise<ReadonlySet<number>> {
    return this.#steps.existing(lineage, seqs);
  }

  /** Returns the sets of a session. */
  async sets(session: SessionId): Promise<FoundSets> {
    const [lineage, upto] = await Promise.all([this.#lineageOf(session), this.#uptoOf(session)]);
    return this.#setsOf(lineage, upto);
  }

  /** Returns the times of some versions and parts, by id. Unknown ids are absent. */
  readonly times = (ids: readonly string[]): Promise<ReadonlyMap<string, VersionTimes>> => readTimes(this.#db, ids);

  /** Returns the times of every version of an object up to this basis, oldest first. */
  async versions(id: string): Promise<readonly VersionTimes[]> {
    const entries = await this.#db.history(id);
    return entries.map(({ validTime, txTime, txId }) => ({ validTime, txTime, txId }));
  }

  /** Returns times and writers of some steps (decision F2). Unknown steps are absent. */
  async stepTimes(session: SessionId, seqs: readonly number[]): Promise<ReadonlyMap<number, StepTimes>> {
    return this.#steps.times(await this.#lineageOf(session), seqs);
  }

  /** Returns the given ids that exist, for documents of any type. */
  readonly existing = (ids: readonly string[]): Promise<readonly string[]> => existingIds(this.#db, ids);

  /** Returns at most `most` ids of objects that begin with a prefix. */
  objectsFrom(prefix: string, most: number): Promise<readonly ObjectId[]> {
    return objectIdsFrom(this.#db, prefix, most);
  }

  /** Returns the sources of many objects, without reading known ones. Objects may have none. */
  readonly sourcesOf = (ids: readonly string[], known?: ReadonlyMap<ObjectId, Source>) =>
    namedSources(this.#db, ids, known);

  /** Returns id and source of every file with one query, for finding an object by its path. */
  sources(): Promise<readonly { readonly id: ObjectId; readonly source: Source }[]> {
    return fileSources(this.#db);
  }

  /** Returns the rows of any query. Keeps equal rows, because the query's limit counts them. */
  rows(
    query: DatalogQuery,
    args: readonly EdnValue[],
    options: RequestOptions,
  ): Promise<readonly (readonly EdnValue[])[]> {
    return this.#db.bag(query, args, options);
  }

  /** Returns every session, in no order. Reads their roots only if wanted. */
  async sessions({ roots = false }: { readonly roots?: boolean } = {}): Promise<readonly StoredSession[]> {
    return (await this.#known.sessions?.at(this.#db, this)) ?? storedSessions(this.#db, { roots });
  }

  /** Returns every fork, in no order, without reading other sessions. */
  readonly forks = (): Promise<readonly StoredFork[]> => storedForks(this.#db);

  /** Returns the sessions whose turn runs: they have steps after their heads (decision G4). */
  running(sessions: readonly StoredSession[]): Promise<readonly StoredSession[]> {
    return runningSessions(this.#db, sessions);
  }

  /** Returns the last step of a running turn. */
  async lastRunning({ id, upto }: StoredSession): Promise<Step | undefined> {
    const lineage = await this.lineage(id);
    return lineage === undefined ? undefined : (await this.stepsFrom(lineage, { first: upto + 1, upto })).at(-1);
  }

  /** Returns the objects whose content is longer than one chunk, with its hash. Uses one query. */
  longContents(): Promise<readonly (readonly [ObjectId, Sha256])[]> {
    return longContents(this.#db);
  }

  /** Returns the contents of versions by hash. Unknown hashes are absent. */
  async contents(hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, string>> {
    const inline = await inlineContents(this.#db, hashes);
    return new Map([...inline, ...(await this.#texts.many(hashes.filter((hash) => !inline.has(hash))))]);
  }

  /**
   * Returns the assembly records of a session's handed-out contexts (decision E7), ordered by step
   * and time. Records of a fork's ancestors come first. Each record names its own session. Empty
   * for an unknown session.
   *
   * @throws {StoreError} `corrupt-part` if a record does not match its id and there is no
   *   `onDamaged`
   */
  async assemblies(session: SessionId, wanted: WantedRecords = {}): Promise<readonly AssemblyProof[]> {
    return readAssemblies(this.#db, await this.#lineageOf(session), wanted);
  }

  /**
   * Returns the records of a session, a lineage or an agent (decision 0016), of some kinds, by step
   * and time. Records of a fork's ancestors come first. For a memory item, returns the newest
   * version. Empty for an unknown session.
   *
   * @throws {StoreError} `corrupt-part` if a record is damaged and there is no `onDamaged`
   */
  async records<Kind extends RecordKind>(
    of: SessionId | Lineage | { readonly agent: string },
    wanted: WantedContextRecords<Kind>,
  ): Promise<readonly ContextRecord<Kind>[]> {
    return readRecords(this.#db, typeof of === 'string' ? await this.#lineageOf(of) : of, wanted);
  }

  /** Returns the texts in chunk parts by hash (decision G5). Unknown hashes are absent. */
  texts(hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, string>> {
    return this.#texts.many(hashes);
  }

  /**
   * Returns the whole text of a version read at this basis, even if its `content` holds only head
   * and tail. Undefined if it has no text.
   */
  wholeText({ version, marks }: FoundVersion): Promise<VersionText | undefined> {
    return this.#texts.ofVersion(version, marks);
  }

  /** Returns the texts whose parts in the database, not in a cache, do not match their hashes. */
  damagedTexts(hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, TextDamage>> {
    return this.#texts.damaged(hashes);
  }

  async #lineageOf(session: SessionId): Promise<Lineage> {
    return (await this.lineage(session)) ?? withoutParent(session);
  }

  /** The last step that a session's head includes. 0 if there is no head. */
  readonly #uptoOf = async (session: SessionId) => (await this.sessionHead(session))?.marks.upto ?? 0;

  /** Reads by id, the fastest way. If a step is missing, a query reports it. */
  async #stepsFrom(
    lineage: Lineage,
    { first, upto }: { readonly first: number; readonly upto: number },
  ): Promise<readonly Step[]> {
    const steps = await this.stepsFrom(lineage, { first, upto });
    return steps.length <= upto - first ? this.#steps.steps(lineage, { first }) : steps;
  }

  #setsOf(lineage: Lineage, upto: number): Promise<FoundSets> {
    return this.#steps.sets(lineage, (first) => this.#stepsFrom(lineage, { first, upto }));
  }

  #contents(documents: readonly StoredDocument[]): Promise<ReadonlyMap<Sha256, string>> {
    return this.#texts.many(documents.map(contentPartHash).filter((hash) => hash !== undefined));
  }

  async #foldedVersion(document: StoredDocument): Promise<ObjectVersion> {
    const { upto = 0, parent } = marksOf(document);
    const lineage = await lineageFrom(this.#db, sessionOfFolded(document), parent);
    if (document.type === 'session') return foldedSession(document, await this.#setsOf(lineage, upto));
    return foldedChat(document, await this.#stepsFrom(lineage, { first: 1, upto }));
  }
}

function textOf(document: StoredDocument, texts: ReadonlyMap<Sha256, string>): string | undefined {
  const hash = contentPartHash(document);
  return hash === undefined ? undefined : texts.get(hash);
}
