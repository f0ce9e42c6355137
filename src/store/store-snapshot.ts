import type { EdnValue } from '../edn/values.js';
import type { AssemblyProof } from '../objects/assembly-proof.js';
import type { ContextRecord, RecordKind } from '../objects/context-record.js';
import { type ObjectId, type SessionId, type Sha256, sessionId, sessionObjectId } from '../objects/ids.js';
import type { ObjectVersion } from '../objects/seal.js';
import type { FilesystemSource, Source } from '../objects/source.js';
import type { Step } from '../objects/step.js';
import { askOnce } from '../values/ask-once.js';
import { defined } from '../values/defined.js';
import type { DatalogQuery } from '../xtdb/datalog.js';
import type { Basis, DbSnapshot } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { EntityNames } from '../xtdb/entity-names.js';
import type { RequestOptions } from '../xtdb/requests.js';
import { readAssemblies, type WantedRecords } from './assemblies.js';
import { readRecords, type WantedContextRecords } from './context-records.js';
import {
  contentPartHash,
  type ForkPoint,
  foldedChat,
  foldedSession,
  fromStored,
  type HeadMarks,
  isFolded,
  isHead,
  marksOf,
  sessionOfFolded,
} from './head.js';
import { type Lineage, lineageFrom, type StepRange, withoutParent } from './lineage.js';
import { formerId } from './part-id.js';
import {
  existingIds,
  fileSources,
  headsWithTimes,
  inlineContents,
  longContents,
  namedSources,
  objectIdsFrom,
  readTimes,
  sessionRows,
  type VersionTimes,
} from './queries.js';
import { PageReader } from './read-pages.js';
import { type FoundSets, type PagedRange, StepReader, type StepTimes } from './read-steps.js';
import { SessionDocuments } from './session-documents.js';
import type { KnownCall, KnownCalls } from './step-page.js';
import { stepId } from './step-part.js';
import { type TextCache, type TextDamage, TextReader, type VersionText } from './texts.js';

/** A head as it stands at a basis: hashes and marks without the content. */
export interface Head {
  readonly document: StoredDocument;
  readonly marks: HeadMarks;
  /** From when on this version holds [decision F7]. */
  readonly validTime: Date;
}

/** A version at a basis together with the store's marks. */
export interface FoundVersion {
  readonly version: ObjectVersion;
  readonly marks: HeadMarks;
}

/** One entry of an object's history by its head; `document` is undefined where the entity was deleted from the database. */
export interface HistoryHead extends VersionTimes {
  /** From 1, in the order of valid time. */
  readonly number: number;
  readonly document: StoredDocument | undefined;
  readonly marks: HeadMarks;
}

/** What the heads of a session say without its steps. */
export interface StoredSession {
  readonly id: SessionId;
  readonly turns: number;
  /** The last step that its head includes (decision G4). */
  readonly upto: number;
  /** From when on the head holds. */
  readonly validTime: Date;
  readonly parent: ForkPoint | undefined;
  /** The folders of the clients that have had it open; undefined where that was not kept. */
  readonly roots: readonly FilesystemSource[] | undefined;
}

/** What a store knows whichever basis it reads at. */
interface KnownOfStore {
  readonly cache: TextCache;
  readonly calls: KnownCalls;
}

/** Steps of a running turn that are asked for at once: they lie beyond the head, which does not tell how many there are. */
const RUNNING_STEPS = 64;

/**
 * The objects as they stood at one basis: SSOT documents with exactly their keys, every hash checked (decision G1).
 * All reads of one snapshot see the same valid time and transaction; nothing is ever written through it.
 */
export class StoreSnapshot {
  /** Pages of steps (decision 0015). */
  readonly pages: PageReader;
  readonly documents: SessionDocuments;
  readonly #db: DbSnapshot;
  readonly #known: KnownOfStore;
  readonly #texts: TextReader;
  readonly #steps: StepReader;
  /** At one basis a lineage is always the same, and so is the head of a session. */
  readonly #lineages = new Map<SessionId, Promise<Lineage | undefined>>();
  readonly #sessionHeads = new Map<SessionId, Promise<Head | undefined>>();

  /** Texts are read from `texts`, everything else from `db`. */
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

  /** The same objects, of which no document is asked for twice, texts aside: for a question that comes back to all of a session. */
  remembering(): StoreSnapshot {
    return new StoreSnapshot(this.#db.remembering(), this.#known, this.#db);
  }

  /** The objects as they stood at an earlier transaction of this snapshot's own past, without a request; undefined for a later one. */
  earlier({ validTime, txId }: { readonly validTime: Date; readonly txId: number }): StoreSnapshot | undefined {
    const db = this.#db.earlier(validTime, txId);
    return db === undefined ? undefined : new StoreSnapshot(db, this.#known);
  }

  /** The same objects, of which some go by other names. */
  named = (names: EntityNames): StoreSnapshot => new StoreSnapshot(this.#db.named(names), this.#known);

  /** The heads of many objects, one query: what indexing decides by. Unknown ids are absent. */
  async heads(ids: readonly string[]): Promise<ReadonlyMap<string, Head>> {
    const heads = new Map<string, Head>();
    if (ids.length === 0) return heads;
    for (const { document, validTime } of await headsWithTimes(this.#db, ids)) {
      if (isHead(document)) heads.set(String(document['xt/id']), { document, marks: marksOf(document), validTime });
    }
    return heads;
  }

  /** The head of a session, asked for once; undefined where the database does not hold it. */
  sessionHead(session: SessionId): Promise<Head | undefined> {
    const id = sessionObjectId(session);
    return askOnce(this.#sessionHeads, session, async () => (await this.heads([id])).get(id));
  }

  /** Many objects in full; unknown ids are absent. */
  async getMany(ids: readonly string[]): Promise<ReadonlyMap<ObjectId, FoundVersion>> {
    const found = new Map<ObjectId, FoundVersion>();
    if (ids.length === 0) return found;
    const documents = [...(await this.#db.entities(ids)).values()].filter(isHead);
    const texts = await this.#contents(documents);
    for (const document of documents) {
      const version = isFolded(document) ? await this.#foldedVersion(document) : fromStored(document, textOf(document, texts));
      found.set(version['xt/id'], { version, marks: marksOf(document) });
    }
    return found;
  }

  /** The versions of heads of files, calls and prompts that were read at this basis: their texts are read, every hash is checked. */
  async versionsOf(heads: readonly Head[]): Promise<ReadonlyMap<ObjectId, FoundVersion>> {
    return new Map((await this.versionsIn(heads)).map((found) => [found.version['xt/id'], found]));
  }

  /** As `versionsOf`, one for each head: several may be of one object. */
  async versionsIn(heads: readonly Pick<Head, 'document' | 'marks'>[]): Promise<readonly FoundVersion[]> {
    const texts = await this.#contents(heads.map(({ document }) => document));
    return heads.map(({ document, marks }) => ({ version: fromStored(document, textOf(document, texts)), marks }));
  }

  /** One object in full; undefined when the database knows none by this id at this basis. */
  async get(id: string): Promise<FoundVersion | undefined> {
    return (await this.getMany([id])).get(id as ObjectId);
  }

  /**
   * The heads of an object's versions up to this basis, oldest first, or of the newest ones alone: neither texts nor steps are read, no hash is checked.
   * Empty for an unknown id.
   */
  async historyOfHeads(id: string, newest = Number.POSITIVE_INFINITY): Promise<readonly HistoryHead[]> {
    const times = Number.isFinite(newest) ? await this.versions(id) : [];
    const from = times.at(-newest)?.validTime;
    const entries = (await this.#db.history(id, { withDocs: true, ...defined({ from }) })).slice(Number.isFinite(newest) ? -newest : 0);
    const before = Math.max(0, times.length - entries.length);
    return entries.map(({ document, validTime, txTime, txId }, i) => {
      const head = document !== undefined && isHead(document) ? document : undefined;
      return { number: before + i + 1, document: head, marks: head === undefined ? {} : marksOf(head), validTime, txTime, txId };
    });
  }

  /** One step of a session; undefined when it is not written. */
  step(session: SessionId, seq: number): Promise<Step | undefined> {
    return this.#steps.step(session, seq);
  }

  /**
   * The steps of a session, all or those of a range, in order, a fork's shared ones first (decision F2); empty for an unknown session. Those of a range are read as each lies
   * by itself, never from pages.
   */
  async steps(session: SessionId, range: StepRange = {}): Promise<readonly Step[]> {
    const lineage = await this.#lineageOf(session);
    return range.first !== undefined || range.last !== undefined
      ? this.#steps.steps(lineage, range)
      : this.#stepsFrom(lineage, { first: 1, upto: await this.#uptoOf(session) });
  }

  /** Whose steps make up a session (decision F2); the same at every basis that holds it. Undefined where the session is not there. */
  lineage(session: SessionId): Promise<Lineage | undefined> {
    return askOnce(this.#lineages, session, async () => {
      const head = await this.sessionHead(session);
      return head === undefined ? undefined : lineageFrom(this.#db, session, head.marks.parent);
    });
  }

  /**
   * As `steps` of a range, where the session's lineage is known. `later` may hold pages of them that are not there yet at this basis, which then has to hold every step of
   * the range.
   */
  stepsAlong(lineage: Lineage, range: PagedRange, later: StoreSnapshot = this): Promise<readonly Step[]> {
    return this.#steps.along(lineage, range, later.pages);
  }

  /**
   * As `steps`, from one on to the last, where the session's lineage is known and its head includes the steps up to `upto`: they are called by their ids, and only so
   * many beyond the head as a running turn mostly has.
   */
  async stepsFrom(lineage: Lineage, { first, upto }: { readonly first: number; readonly upto: number }): Promise<readonly Step[]> {
    const near = Math.max(upto, first - 1) + RUNNING_STEPS;
    const steps = await this.stepsAlong(lineage, { first, last: near, paged: upto });
    if (steps.at(-1)?.seq !== near) return steps;
    return [...steps, ...(await this.stepsAlong(lineage, { first: near + 1, last: Number.MAX_SAFE_INTEGER }))];
  }

  /**
   * What the line of a tool call is made of, where a page of steps held it that was read through the same store; it holds at every basis that has the step which names
   * the call.
   */
  knownCall(id: ObjectId): KnownCall | undefined {
    return this.#known.calls.get(id);
  }

  /** Which of some steps the database holds at this basis. */
  existingSteps(lineage: Lineage, seqs: readonly number[]): Promise<ReadonlySet<number>> {
    return this.#steps.existing(lineage, seqs);
  }

  /** The sets of a session, the last step that they include, and how much of the index the snapshots hold. */
  async sets(session: SessionId): Promise<FoundSets> {
    const [lineage, upto] = await Promise.all([this.#lineageOf(session), this.#uptoOf(session)]);
    return this.#setsOf(lineage, upto);
  }

  /** When some versions and parts became true and known, by id; unknown ids are absent. */
  times(ids: readonly string[]): Promise<ReadonlyMap<string, VersionTimes>> {
    return readTimes(this.#db, ids);
  }

  /** The times of every version of an object up to this basis, oldest first, without reading the versions. */
  async versions(id: string): Promise<readonly VersionTimes[]> {
    const entries = await this.#db.history(id);
    return entries.map(({ validTime, txTime, txId }) => ({ validTime, txTime, txId }));
  }

  /** Which session wrote a step, a fork's ancestor perhaps (decision F2), and when the database learned it; unknown steps are absent. */
  async stepTimes(session: SessionId, seqs: readonly number[]): Promise<ReadonlyMap<number, StepTimes>> {
    return this.#steps.times(await this.#lineageOf(session), seqs);
  }

  /** Which of some ids the database knows, whatever stands there. */
  existing(ids: readonly string[]): Promise<readonly string[]> {
    return existingIds(this.#db, ids);
  }

  /** Ids of objects that begin alike, at most `most` of them. */
  objectsFrom(prefix: string, most: number): Promise<readonly ObjectId[]> {
    return objectIdsFrom(this.#db, prefix, most);
  }

  /** The sources of many objects, which take a fraction of their heads; ids of objects without a source are absent. */
  readonly sourcesOf = (ids: readonly string[]) => namedSources(this.#db, ids);

  /** Id and source of every file; one query, for finding an object by its path. */
  sources(): Promise<readonly { readonly id: ObjectId; readonly source: Source }[]> {
    return fileSources(this.#db);
  }

  /** The rows of any query at this basis, equal ones repeated as its limit counts them; `timeoutMs` bounds the wait. */
  rows(query: DatalogQuery, args: readonly EdnValue[], options: RequestOptions): Promise<readonly (readonly EdnValue[])[]> {
    return this.#db.bag(query, args, options);
  }

  /** Every session, in no order; one query. */
  async sessions(): Promise<readonly StoredSession[]> {
    return (await sessionRows(this.#db)).map(({ document, turns, validTime }) => {
      const { upto = 0, parent, roots } = marksOf(document);
      return { id: sessionId(String(document.session_id)), turns, upto, validTime, parent, roots };
    });
  }

  /** Those of some sessions whose turn runs: they have steps beyond what their heads include (decision G4). One query. */
  async running(sessions: readonly StoredSession[]): Promise<readonly StoredSession[]> {
    const next = sessions.map((session) => ({ session, part: stepId(session.id, session.upto + 1) }));
    const found = new Set(
      await existingIds(
        this.#db,
        next.flatMap(({ part }) => [part, formerId(part)]),
      ),
    );
    return next.flatMap(({ session, part }) => (found.has(part) || found.has(formerId(part)) ? [session] : []));
  }

  /** The objects whose content is longer than one chunk, with its hash. One query. */
  longContents(): Promise<readonly (readonly [ObjectId, Sha256])[]> {
    return longContents(this.#db);
  }

  /** The contents of versions under their hashes; unknown hashes are absent. */
  async contents(hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, string>> {
    const inline = await inlineContents(this.#db, hashes);
    return new Map([...inline, ...(await this.#texts.many(hashes.filter((hash) => !inline.has(hash))))]);
  }

  /**
   * The records of the contexts that were handed out of a session (decision E7), by step and moment, those of a fork's ancestors first: each names the
   * session that it was made of. Empty for an unknown session.
   *
   * @throws {StoreError} `corrupt-part` – a record does not fit its id and there is no `onDamaged`
   */
  async assemblies(session: SessionId, wanted: WantedRecords = {}): Promise<readonly AssemblyProof[]> {
    return readAssemblies(this.#db, await this.#lineageOf(session), wanted);
  }

  /**
   * The records of a session, of a lineage or of an agent (decision 0016), of some kinds, by step and moment, those of a fork's ancestors first; of a memory item the newest version.
   * Empty for an unknown session.
   *
   * @throws {StoreError} `corrupt-part` – a record is damaged and there is no `onDamaged`
   */
  async records<Kind extends RecordKind>(
    of: SessionId | Lineage | { readonly agent: string },
    wanted: WantedContextRecords<Kind>,
  ): Promise<readonly ContextRecord<Kind>[]> {
    return readRecords(this.#db, typeof of === 'string' ? await this.#lineageOf(of) : of, wanted);
  }

  /** The texts kept under some hashes as chunk parts (decision G5); unknown hashes are absent. */
  texts(hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, string>> {
    return this.#texts.many(hashes);
  }

  /** The whole text of a version that was read at this basis, also where its `content` holds head and tail alone; undefined where it has none. */
  wholeText({ version, marks }: FoundVersion): Promise<VersionText | undefined> {
    return this.#texts.ofVersion(version, marks);
  }

  /** Which of the texts under some hashes the database does not hold as they are called: read from it, not from what is known here. */
  damagedTexts(hashes: readonly Sha256[]): Promise<ReadonlyMap<Sha256, TextDamage>> {
    return this.#texts.damaged(hashes);
  }

  async #lineageOf(session: SessionId): Promise<Lineage> {
    return (await this.lineage(session)) ?? withoutParent(session);
  }

  /** The last step that a session's head includes; 0 where there is none. */
  readonly #uptoOf = async (session: SessionId) => (await this.sessionHead(session))?.marks.upto ?? 0;

  /** Called by their ids takes a fraction of a query for them; where some of those that the head includes are missing that query says which. */
  async #stepsFrom(lineage: Lineage, { first, upto }: { readonly first: number; readonly upto: number }): Promise<readonly Step[]> {
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
