import pLimit from 'p-limit';
import { chatObjectId, type SessionId, sessionObjectId } from '../objects/ids.js';
import type { Step } from '../objects/step.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { END_OF_TIME, type TxReceipt } from '../xtdb/transactions.js';
import { entityHash, type LoggedChanges, type TransactionLog } from '../xtdb/tx-log.js';
import { isDamage } from './errors.js';
import { formerId } from './part-id.js';
import { arrivingIds, runningSessions, storedIds, storedSessions, whole } from './session-rows.js';
import { type KnownSessions, parseTable, tableText } from './session-table-text.js';
import type { StoredSession } from './snapshot-rows.js';
import { stepId } from './step-part.js';

/** The file of a table. */
export interface SessionFile {
  /** Returns its text. Undefined if there is none. */
  read(): Promise<string | undefined>;
  write(text: string): Promise<void>;
}

/** Reads the end of a running turn. */
interface RunningTurns {
  lastRunning(session: StoredSession): Promise<Step | undefined>;
}

/**
 * Number of transactions before a basis among which the log's last one must be. The log omits
 * aborted ones.
 */
const NEAR = 64;
const TURNS_AT_ONCE = 4;
/** Number of transactions after which the file is written again. */
const WRITTEN_AFTER = 256;
type Sessions = KnownSessions['sessions'];

const isReceipt = (a: TxReceipt, b: TxReceipt): boolean =>
  a.txId === b.txId && a.txTime.getTime() === b.txTime.getTime();

/** Returns the entities whose writes change the row of a session. */
function entitiesOf({ id, upto, running }: StoredSession): readonly string[] {
  const last = running?.seq ?? upto;
  const steps = Array.from({ length: last - upto + 1 }, (_, i) => stepId(id, upto + 1 + i));
  return [sessionObjectId(id), chatObjectId(id), ...steps, ...steps.slice(0, -1).map(formerId)];
}

/**
 * The sessions of a database at its newest versions. Reading all of them takes a quarter of a
 * millisecond each. The table remembers them in a file with the transaction that it covers. The log
 * says which entities were written since then, and only their sessions are read again, at the basis
 * of the question. Therefore the table never answers for another transaction than the one asked.
 * It is a cache: it is made again if the file is missing, damaged or of another database.
 */
export class SessionTable {
  readonly #log: TransactionLog;
  readonly #file: SessionFile;
  #known: KnownSessions | undefined;
  /** The transaction that the file covers. */
  #written = Number.NEGATIVE_INFINITY;
  #last: Promise<unknown> = Promise.resolve();

  constructor(log: TransactionLog, file: SessionFile) {
    [this.#log, this.#file] = [log, file];
  }

  /**
   * Returns every session at a basis, in no order, with its roots and the end of its running turn.
   * Undefined unless the basis selects the newest versions.
   */
  async at(db: DbSnapshot, turns: RunningTurns): Promise<readonly StoredSession[] | undefined> {
    const { txId, validTime } = db.basis;
    if (txId === undefined || validTime.getTime() !== END_OF_TIME.getTime()) return undefined;
    // One question reads the changes, and the others use its result.
    const sessions = this.#last.then(() => this.#sessionsAt(db, txId, turns));
    this.#last = sessions.catch(() => undefined);
    const [found, arriving] = await Promise.all([sessions, arrivingIds(db)]);
    return found === undefined ? undefined : whole([...found.values()], arriving);
  }

  async #sessionsAt(db: DbSnapshot, txId: number, turns: RunningTurns): Promise<Sessions | undefined> {
    this.#known ??= await this.#read();
    const known = this.#known;
    if (known !== undefined) {
      const { mark } = known;
      const isPast = txId < mark.txId;
      const changes = await this.#changesOf(known, txId);
      const isOther = changes?.transactions.some((one) => isReceipt(one, mark)) === false;
      const sessions =
        changes === undefined || isOther ? undefined : await renewedSessions(db, known.sessions, { changes, turns });
      const last = changes?.transactions.findLast((one) => one.txId <= txId);
      if (sessions !== undefined && last !== undefined && !isPast) await this.#keep({ mark: last, sessions });
      // The table of later transactions stays.
      if (sessions !== undefined || (isPast && !isOther)) return sessions;
    }
    const sessions = await readSessions(db, turns);
    const near = await this.#log.receiptsAfter(Math.max(-1, txId - NEAR));
    const mark = near?.findLast((one) => one.txId <= txId);
    this.#written = Number.NEGATIVE_INFINITY;
    if (mark !== undefined) await this.#keep({ mark, sessions });
    return sessions;
  }

  /**
   * Returns the writes between the table and a basis, in either direction. Undefined if they are
   * unknown. The table's own transaction is absent if the log is that of another database.
   */
  async #changesOf({ mark, sessions }: KnownSessions, txId: number): Promise<LoggedChanges | undefined> {
    const [first] = sessions.keys();
    if (first === undefined) return undefined;
    const changes = await this.#log.changesAfter(Math.min(mark.txId - 1, txId), sessionObjectId(first));
    if (changes === undefined) return undefined;
    const from = Math.min(mark.txId, txId);
    return { ...changes, writes: new Map([...changes.writes].filter(([, write]) => write.txId > from)) };
  }

  async #read(): Promise<KnownSessions | undefined> {
    const text = await this.#file.read();
    const known = text === undefined ? undefined : parseTable(text);
    if (known !== undefined) this.#written = known.mark.txId;
    return known;
  }

  async #keep(known: KnownSessions): Promise<void> {
    this.#known = known;
    if (known.mark.txId - this.#written < WRITTEN_AFTER) return;
    this.#written = known.mark.txId;
    await this.#file.write(tableText(known));
  }
}

/** Returns sessions with the ends of their running turns. A damaged turn stays unread. */
async function withRunning(db: DbSnapshot, sessions: readonly StoredSession[], turns: RunningTurns): Promise<Sessions> {
  const running = new Set(await runningSessions(db, sessions));
  const read = await pLimit(TURNS_AT_ONCE).map(sessions, async (session) => {
    if (!running.has(session)) return { ...session, running: null };
    try {
      const step = await turns.lastRunning(session);
      return step === undefined ? session : { ...session, running: { seq: step.seq, at: step.at } };
    } catch (error) {
      if (isDamage(error)) return session;
      throw error;
    }
  });
  return new Map(read.map((session) => [session.id, session]));
}

async function readSessions(db: DbSnapshot, turns: RunningTurns, among?: readonly SessionId[]): Promise<Sessions> {
  const wanted = { roots: true, arriving: true, ...(among === undefined ? {} : { among }) };
  return withRunning(db, await storedSessions(db, wanted), turns);
}

/** Returns the sessions of a table at another basis. Undefined if most of them differ. */
async function renewedSessions(
  db: DbSnapshot,
  sessions: Sessions,
  { changes, turns }: { readonly changes: LoggedChanges; readonly turns: RunningTurns },
): Promise<Sessions | undefined> {
  const { writes } = changes;
  if (writes.size === 0) return sessions;
  const ids = await storedIds(db);
  const isChanged = (session: StoredSession): boolean => entitiesOf(session).some((id) => writes.has(entityHash(id)));
  const unchanged = new Map([...sessions].filter(([, session]) => !isChanged(session)));
  const among = ids.filter((id) => !unchanged.has(id));
  if (among.length > ids.length / 2) return undefined;
  const read = among.length === 0 ? undefined : await readSessions(db, turns, among);
  const all = ids.flatMap((id): readonly StoredSession[] => {
    const session = unchanged.get(id) ?? read?.get(id);
    return session === undefined ? [] : [session];
  });
  return new Map(all.map((session) => [session.id, session]));
}
