import type { ObjectId, PartId, Sha256 } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { entityHash, type LoggedWrite } from '../xtdb/tx-log.js';
import type { Lineage } from './lineage.js';
import { partsAtSteps } from './queries.js';
import { stepId } from './step-part.js';
import { chunkId, chunkListId } from './texts.js';

/**
 * Maximum number of transactions per step up to which one read of the log is cheaper than a look-up
 * for each step.
 */
export const LOGGED_A_STEP = 20;

/** A valid time and a transaction. */
interface Place {
  readonly validTime: Date;
  readonly txId: number;
}

/**
 * The times at which the documents of one session were written. They are read from the transaction
 * log, which is read from the session's first step to its end. A document that no later transaction
 * wrote is the same at every later basis, so one read of the log serves many bases. Callers still
 * verify every result.
 */
export class LoggedWrites {
  readonly #after: number;
  readonly #writes: ReadonlyMap<string, LoggedWrite>;
  readonly #earlier: ReadonlySet<string> | undefined;
  readonly #hashes = new Map<string, string>();

  /**
   * `after` is the transaction before the first log entry that was read. `earlier` are the steps
   * that existed at that transaction, or undefined if they were not read.
   */
  constructor(after: number, writes: ReadonlyMap<string, LoggedWrite>, earlier: ReadonlySet<string> | undefined) {
    this.#after = after;
    this.#writes = writes;
    this.#earlier = earlier;
  }

  /**
   * Reads the writes since the first of a session's steps. Undefined for a fork, or if the log is
   * unavailable or too long.
   */
  static async read(db: DbSnapshot, { session, segments }: Lineage, steps: number): Promise<LoggedWrites | undefined> {
    const latest = db.basis.txId;
    const first = stepId(session, 1);
    const written = segments.length === 1 && steps > 0 ? await db.entityTx(first) : undefined;
    if (written === undefined || latest === undefined || latest - written.txId > steps * LOGGED_A_STEP)
      return undefined;
    const after = written.txId - 1;
    const writes = await db.log.writesAfter(after);
    if (writes?.get(entityHash(first))?.first.txId !== written.txId) return undefined;
    // Steps are written with a guard that they do not exist yet, and the log records the guard.
    // Steps of an import, or of an earlier version without that guard, need a query.
    const isNew = Array.from({ length: steps }, (_, i) => stepId(session, i + 1)).every(
      (id) => writes.get(entityHash(id))?.isNew === true,
    );
    const before = isNew || after < 0 ? undefined : db.earlier(db.basis.validTime, after);
    const earlier =
      before === undefined
        ? []
        : await partsAtSteps(before, { kind: 'steps', session, first: 1, last: Number.POSITIVE_INFINITY });
    return new LoggedWrites(after, writes, isNew ? undefined : new Set(earlier.map((part) => part['xt/id'])));
  }

  /** Returns whether a document has no writes after a transaction. False if that is unknown. */
  isUnchanged(id: string, txId: number | undefined): boolean {
    if (txId === undefined || txId < this.#after) return false;
    const write = this.#of(id);
    return write === undefined || write.txId <= txId;
  }

  /** Returns whether a document exists at a basis. Undefined if its writes do not decide that. */
  isThere(id: string, { validTime, txId }: Place): boolean | undefined {
    const write = this.#of(id);
    if (write === undefined || !write.isKept || txId < this.#after) return undefined;
    if (write.first.txId > txId) return write.isNew || this.#earlier?.has(id) === false ? false : undefined;
    return write.first.validTime.getTime() <= validTime.getTime() ? true : undefined;
  }

  /**
   * Returns whether a document at a basis equals its current state, because it was written once.
   * Undefined if its writes do not decide that.
   */
  isAsNow(id: string, place: Place): boolean | undefined {
    const write = this.#of(id);
    const isOnce = write?.first.txId === write?.txId && write?.first.validTime.getTime() === write?.validTime.getTime();
    const isThere = this.isThere(id, place);
    return isThere === true && !isOnce ? undefined : isThere;
  }

  /** Returns whether a document has no writes since the session began. */
  isUnwritten(id: string): boolean {
    return this.#of(id) === undefined && this.#earlier?.has(id) !== true;
  }

  /**
   * Returns whether a text's parts were last written no later than the document that refers to
   * them. They then exist at every basis with that document.
   */
  isTextOf(hash: Sha256, holder: ObjectId | PartId): boolean {
    const [chunk, list, held] = [this.#of(chunkId(hash)), this.#of(chunkListId(hash)), this.#of(holder)];
    // The ids of a list's chunks are unknown here, so their writes cannot be checked.
    if (list !== undefined) return false;
    if (chunk === undefined) return true;
    return (
      held !== undefined &&
      chunk.isKept &&
      chunk.txId <= held.txId &&
      chunk.validTime.getTime() <= held.validTime.getTime()
    );
  }

  #of(id: string): LoggedWrite | undefined {
    const hash = this.#hashes.get(id) ?? entityHash(id);
    this.#hashes.set(id, hash);
    return this.#writes.get(hash);
  }
}
