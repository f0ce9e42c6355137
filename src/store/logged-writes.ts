import type { ObjectId, PartId, Sha256 } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { entityHash, type LoggedWrite } from '../xtdb/tx-log.js';
import type { Lineage } from './lineage.js';
import { partsAtSteps } from './queries.js';
import { stepId } from './step-part.js';
import { chunkId, chunkListId } from './texts.js';

/** Transactions for each step that is asked about, up to which reading the log of all of them is cheaper than asking for each. */
export const LOGGED_A_STEP = 20;

/** A moment of both clocks. */
interface Place {
  readonly validTime: Date;
  readonly txId: number;
}

/**
 * When the documents of one session were written, as the log of transactions has it from the session's first step on. What was not written after a transaction stands
 * at every valid time as it stood then: so what is read once holds at many bases, and nothing is taken on trust.
 */
export class LoggedWrites {
  readonly #after: number;
  readonly #writes: ReadonlyMap<string, LoggedWrite>;
  readonly #earlier: ReadonlySet<string> | undefined;
  readonly #hashes = new Map<string, string>();

  /** `after` is the transaction that the log was read after, `earlier` the steps that were there by then; undefined where that was not asked. */
  constructor(after: number, writes: ReadonlyMap<string, LoggedWrite>, earlier: ReadonlySet<string> | undefined) {
    this.#after = after;
    this.#writes = writes;
    this.#earlier = earlier;
  }

  /** The writes since the first of a session's steps; undefined for a fork, and where the log does not tell, or tells too much. */
  static async read(db: DbSnapshot, { session, segments }: Lineage, steps: number): Promise<LoggedWrites | undefined> {
    const latest = db.basis.txId;
    const first = stepId(session, 1);
    const written = segments.length === 1 && steps > 0 ? await db.entityTx(first) : undefined;
    if (written === undefined || latest === undefined || latest - written.txId > steps * LOGGED_A_STEP) return undefined;
    const after = written.txId - 1;
    const writes = await db.log.writesAfter(after);
    if (writes?.get(entityHash(first))?.first.txId !== written.txId) return undefined;
    // Steps go through only where they are not there yet, and the log says so; those of an import, or of a version that wrote without that, are asked for.
    const isNew = Array.from({ length: steps }, (_, i) => stepId(session, i + 1)).every((id) => writes.get(entityHash(id))?.isNew === true);
    const before = isNew || after < 0 ? undefined : db.earlier(db.basis.validTime, after);
    const earlier =
      before === undefined ? [] : await partsAtSteps(before, { kind: 'steps', session, first: 1, last: Number.POSITIVE_INFINITY });
    return new LoggedWrites(after, writes, isNew ? undefined : new Set(earlier.map((part) => part['xt/id'])));
  }

  /** Whether nothing was written to a document after a transaction; false also where that is not known. */
  isUnchanged(id: string, txId: number | undefined): boolean {
    if (txId === undefined || txId < this.#after) return false;
    const write = this.#of(id);
    return write === undefined || write.txId <= txId;
  }

  /** Whether a document stands at a basis; undefined where its writes do not tell. */
  isThere(id: string, { validTime, txId }: Place): boolean | undefined {
    const write = this.#of(id);
    if (write === undefined || !write.isKept || txId < this.#after) return undefined;
    if (write.first.txId > txId) return write.isNew || this.#earlier?.has(id) === false ? false : undefined;
    return write.first.validTime.getTime() <= validTime.getTime() ? true : undefined;
  }

  /** Whether a document stands at a basis as it does now: it was written once, for good. Undefined where its writes do not tell. */
  isAsNow(id: string, place: Place): boolean | undefined {
    const write = this.#of(id);
    const isOnce = write?.first.txId === write?.txId && write?.first.validTime.getTime() === write?.validTime.getTime();
    const isThere = this.isThere(id, place);
    return isThere === true && !isOnce ? undefined : isThere;
  }

  /** Whether nothing was written to a document since the session began. */
  isUnwritten(id: string): boolean {
    return this.#of(id) === undefined && this.#earlier?.has(id) !== true;
  }

  /** Whether the parts of a text have been there as they are since the last write of what holds it, or before: wherever that stands, they do. */
  isTextOf(hash: Sha256, holder: ObjectId | PartId): boolean {
    const [chunk, list, held] = [this.#of(chunkId(hash)), this.#of(chunkListId(hash)), this.#of(holder)];
    // The chunks of a list are not known here.
    if (list !== undefined) return false;
    if (chunk === undefined) return true;
    return held !== undefined && chunk.isKept && chunk.txId <= held.txId && chunk.validTime.getTime() <= held.validTime.getTime();
  }

  #of(id: string): LoggedWrite | undefined {
    const hash = this.#hashes.get(id) ?? entityHash(id);
    this.#hashes.set(id, hash);
    return this.#writes.get(hash);
  }
}
