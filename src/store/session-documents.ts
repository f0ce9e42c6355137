import pLimit from 'p-limit';
import { RECORD_KINDS } from '../objects/context-record.js';
import {
  chatObjectId,
  type ObjectId,
  type SessionId,
  type Sha256,
  sessionObjectId,
  systemPromptObjectId,
} from '../objects/ids.js';
import { askOnce } from '../values/promises.js';
import type { DbSnapshot, EntityTx } from '../xtdb/db-snapshot.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { EntityNames } from '../xtdb/entity-names.js';
import { recordRanges } from './context-records.js';
import { StoreError } from './errors.js';
import { marksOf } from './head.js';
import {
  ARRIVING,
  fromImportPart,
  fromTransactionPart,
  type ImportedTransaction,
  type ImportState,
  importId,
} from './import-parts.js';
import { type Lineage, type LineageSegment, type LineQuestion, lineNames, linesOf } from './lineage.js';
import { LoggedWrites } from './logged-writes.js';
import { formerId, isRenewed, renewedPart } from './part-id.js';
import { headsWithTimes, partsAtSteps, recordParts, snapshotParts, type TimedDocument } from './queries.js';
import { stepId } from './step-part.js';
import { chunkId, chunkListId, chunksOf } from './texts.js';

/** The position of one document version on both clocks, without the document. */
export interface DocumentPlace extends EntityTx {
  readonly id: string;
  /** Whether it is the only version of its document. */
  readonly isOnly: boolean;
}

const PLACES_AT_ONCE = 8;
const DOCUMENTS_AT_ONCE = 250;
const TRANSACTIONS_AT_ONCE = 250;

/**
 * Reads the stored documents of a session with their positions on both clocks, at one basis.
 * Bundles are built from these documents and compared with them. Checks no hash.
 */
export class SessionDocuments {
  readonly #db: DbSnapshot;
  /** The states of imports, cached because they never change at one basis. */
  readonly #imports = new Map<SessionId, Promise<StoredDocument | undefined>>();

  constructor(db: DbSnapshot) {
    this.#db = db;
  }

  /**
   * The names by which a session finds the file versions of an import's line, if this snapshot uses
   * them.
   */
  get names(): EntityNames | undefined {
    return this.#db.names;
  }

  /** Calls `linesOf` at this basis. */
  linesOf(file: string): Promise<readonly SessionId[]> {
    return linesOf(this.#db, file);
  }

  /** Calls `lineNames` at this basis. */
  lineNames(...asked: LineQuestion): Promise<EntityNames | undefined> {
    return lineNames(this.#db, (session) => this.#importPart(session), ...asked);
  }

  /** Returns the positions of every version of some documents, by valid time. */
  async places(ids: readonly string[]): Promise<readonly DocumentPlace[]> {
    const found = await pLimit(PLACES_AT_ONCE).map(ids, async (id) => {
      const entries = (await this.#db.history(id)).filter(({ deleted }) => !deleted);
      return entries.map(({ validTime, txId, txTime }) => ({
        id,
        validTime,
        txId,
        txTime,
        isOnly: entries.length === 1,
      }));
    });
    return found.flat();
  }

  #importPart(session: SessionId): Promise<StoredDocument | undefined> {
    return askOnce(this.#imports, session, () => this.#db.entity(importId(session)));
  }

  /**
   * Returns the logged writes of a session with `steps` steps. Undefined if the transaction log is
   * unavailable.
   */
  writes(lineage: Lineage, steps: number): Promise<LoggedWrites | undefined> {
    // The log has the database's own names, so it does not fit a snapshot with other names.
    return this.names === undefined ? LoggedWrites.read(this.#db, lineage, steps) : Promise.resolve(undefined);
  }

  /** Returns the positions of a segment's own step parts and context records. */
  async partPlaces({ session, first, last }: LineageSegment): Promise<readonly DocumentPlace[]> {
    const from = Math.max(0, first === 1 ? 0 : first);
    const isWithin = (seq: number): boolean => from <= seq && seq <= last;
    const [assemblies, records, snapshots] = await Promise.all([
      partsAtSteps(this.#db, { kind: 'assemblies', session, first: 0, last }),
      recordParts(this.#db, recordRanges(RECORD_KINDS, { session }, { last })),
      snapshotParts(this.#db, session),
    ]);
    const kept = snapshots.filter(({ body }) => isWithin(Number((body as { readonly seq?: unknown } | null)?.seq)));
    return this.places([...assemblies, ...records, ...kept].map((part) => part['xt/id']));
  }

  /**
   * Returns the positions of the parts of some steps, from any format version.
   *
   * @throws {StoreError} `missing-part`
   */
  async stepPlaces(
    session: SessionId,
    { first, last }: { readonly first: number; readonly last: number },
  ): Promise<readonly DocumentPlace[]> {
    const seqs = Array.from({ length: Math.max(0, last - first + 1) }, (_, i) => first + i);
    const found = await pLimit(PLACES_AT_ONCE).map(seqs, async (seq) => {
      const id = stepId(session, seq);
      const [place = (await this.places([formerId(id)]))[0]] = await this.places([id]);
      if (place === undefined)
        throw new StoreError('missing-part', `session ${session} has no step ${seq} in the database`);
      return place;
    });
    return found;
  }

  /**
   * Returns the positions of the versions of a session's head and chat up to a step, and of its
   * prompt before a time.
   */
  async headPlaces(
    session: SessionId,
    { last, before = Number.POSITIVE_INFINITY }: { readonly last: number; readonly before?: number | undefined },
  ): Promise<readonly DocumentPlace[]> {
    const of = async (id: ObjectId): Promise<readonly DocumentPlace[]> => {
      const entries = (await this.#db.history(id, { withDocs: true })).filter(({ document }) => document !== undefined);
      const isWithin = (document: StoredDocument, validTime: Date): boolean =>
        document.type === 'system_prompt' ? validTime.getTime() < before : (marksOf(document).upto ?? 0) <= last;
      const kept = entries.filter(({ document, validTime }) => isWithin(document as StoredDocument, validTime));
      return kept.map(({ validTime, txId, txTime }) => ({ id, validTime, txId, txTime, isOnly: entries.length === 1 }));
    };
    const [head, chat, prompt] = await Promise.all(
      [sessionObjectId(session), chatObjectId(session), systemPromptObjectId(session)].map(of),
    );
    return [...(head ?? []), ...(chat ?? []), ...(prompt ?? [])];
  }

  /**
   * Returns the documents at some positions, in their order.
   *
   * @throws {StoreError} `missing-part`
   */
  async at(places: readonly DocumentPlace[]): Promise<readonly StoredDocument[]> {
    const only = places.filter(({ isOnly }) => isOnly).map(({ id }) => id);
    const found = new Map<string, StoredDocument>();
    for (let i = 0; i < only.length; i += DOCUMENTS_AT_ONCE)
      for (const [id, document] of await this.#db.entities(only.slice(i, i + DOCUMENTS_AT_ONCE)))
        found.set(id, document);
    return pLimit(PLACES_AT_ONCE).map(places, async ({ id, isOnly, validTime, txId }) => {
      const document = isOnly ? found.get(id) : await this.#db.earlier(validTime, txId)?.entity(id);
      if (document === undefined)
        throw new StoreError(
          'missing-part',
          `the database no longer holds a version of ${JSON.stringify(id)} that it held`,
        );
      return isRenewed(document) ? document : renewedPart(document);
    });
  }

  /** Returns the newest documents under some ids. Unknown ids are absent. */
  async newest(ids: readonly string[]): Promise<ReadonlyMap<string, StoredDocument>> {
    const found = new Map<string, StoredDocument>();
    for (let i = 0; i < ids.length; i += DOCUMENTS_AT_ONCE)
      for (const [id, document] of await this.#db.entities(ids.slice(i, i + DOCUMENTS_AT_ONCE)))
        found.set(id, document);
    return found;
  }

  /**
   * Returns the newest documents under some ids, each with the beginning of its valid time. Unknown
   * ids are absent.
   */
  async dated(ids: readonly string[]): Promise<ReadonlyMap<string, TimedDocument>> {
    const found = await headsWithTimes(this.#db, ids);
    return new Map(found.map((one) => [one.document['xt/id'], one]));
  }

  /**
   * Returns the parts that hold the text of a hash, under their current ids. Empty if the text is
   * not stored.
   */
  async textParts(hash: Sha256): Promise<readonly StoredDocument[]> {
    const part = async (id: ReturnType<typeof chunkId>): Promise<StoredDocument | undefined> => {
      const found = (await this.#db.entity(id)) ?? (await this.#db.entity(formerId(id)));
      return found === undefined || !id.startsWith(`${String(found.type)}:`) ? undefined : renewedPart(found);
    };
    const whole = await part(chunkId(hash));
    if (whole !== undefined) return [whole];
    const list = await part(chunkListId(hash));
    if (list === undefined) return [];
    const chunks: StoredDocument[] = [];
    for (const one of chunksOf(list)) {
      const chunk = await part(chunkId(one));
      if (chunk === undefined)
        throw new StoreError(
          'missing-part',
          `${chunkListId(hash)} lists ${chunkId(one)}, which the database does not hold`,
        );
      chunks.push(chunk);
    }
    return [list, ...chunks];
  }

  /**
   * Returns the import state of a session, and whether the import is complete. Undefined if the
   * session was not imported.
   */
  async importOf(session: SessionId): Promise<(ImportState & { readonly isWhole: boolean }) | undefined> {
    const part = await this.#importPart(session);
    return part === undefined ? undefined : { ...fromImportPart(part), isWhole: part.type !== ARRIVING };
  }

  /** Yields the stored transactions of an import, in order. */
  async *importedTransactions(session: SessionId): AsyncGenerator<ImportedTransaction & { readonly number: number }> {
    for (let first = 1; ; first += TRANSACTIONS_AT_ONCE) {
      const ids = Array.from({ length: TRANSACTIONS_AT_ONCE }, (_, i) => importId(session, first + i));
      const found = await this.#db.entities(ids);
      for (const [i, id] of ids.entries()) {
        const part = found.get(id);
        if (part === undefined) return;
        yield { number: first + i, ...fromTransactionPart(part) };
      }
    }
  }

  /**
   * Returns the last transaction of a session's import. Undefined if the session was not imported.
   */
  async importedAt(session: SessionId): Promise<number | undefined> {
    return (await this.#db.entityTx(importId(session)))?.txId;
  }

  /** Returns whether an import of a session is still running. Readers do not see such a session. */
  async isArriving(session: string): Promise<boolean> {
    return (await this.#importPart(session as SessionId))?.type === ARRIVING;
  }
}
