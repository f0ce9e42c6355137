import { setTimeout as delay } from 'node:timers/promises';
import type { JournalDamage } from '../../journal/errors.js';
import type { Durability, Journal } from '../../journal/journal.js';
import {
  adoptableJournals,
  adoptJournal,
  damagedFiles,
  type InspectedJournal,
  inspectJournals,
  openJournal,
  waitingRecords,
} from '../../journal/journals.js';
import { encodePayload } from '../../journal/payload.js';
import type { PendingLimits } from '../../journal/record-progress.js';
import type { SessionId } from '../../objects/ids.js';
import { messageOf } from '../../values/thrown.js';
import { TIME_LIMITS } from '../time-limits.js';
import { type DamagedJournal, lossText, readDamaged, readWrite } from './damaged-journal.js';
import { JournalRefusals } from './journal-refusals.js';
import type { NotKeptError } from './not-kept.js';
import type { SessionWrite } from './session-write.js';
import { encodeWrite } from './write-record.js';

/** The settings of a client's journal. */
interface ClientJournalSettings {
  readonly dataDir: string;
  readonly durability: Durability;
  /** The name of this process in other processes' listings. */
  readonly what: string;
  /** Limits of the backlog for the database. Default: the journal's own limits. */
  readonly limits?: PendingLimits;
  /** Called with one line for each part of a dead process's journal that cannot be read. */
  readonly onNotice: (line: string) => void;
}

/**
 * Returns the notice about trailing bytes of a dead process's journal. The process died while it
 * wrote them, so it never acknowledged them.
 */
function cutNotice(owner: string, { file, offset, length }: JournalDamage): string {
  return length === 0
    ? `the journal ${owner}: ${file} ends at byte ${offset} in the middle of a write; ` +
        'no acknowledged record is missing'
    : `the journal ${owner}: the last ${length} bytes of ${file}, from byte ${offset} on, ` +
        'are not a complete record and were skipped; they were never acknowledged';
}

interface SessionRecord {
  readonly write: SessionWrite;
  readonly sequence: number;
}

/** Maximum attempts to read a journal whose process removes files during the read. */
const MOST_READINGS = 5;

/**
 * Yields the waiting records of a session in a journal, without those that the database refused.
 */
async function* recordsOf(
  dataDir: string,
  { owner, refused }: Pick<InspectedJournal, 'owner' | 'refused'>,
  session: SessionId,
): AsyncGenerator<SessionRecord> {
  let left = refused.find((one) => one.session === session)?.records ?? 0;
  for await (const { payload, sequence } of waitingRecords(dataDir, owner)) {
    const write = readWrite(payload);
    if (!(write instanceof Error) && write.session === session && left-- <= 0) yield { write, sequence };
  }
}

/** An adopted journal that is not fully read yet. */
interface UnreadJournal {
  readonly journal: Journal;
  /** Sequence of the last record that was passed to `adopt`. */
  upto: number;
}

/** Reports to the journal how the delivery of one of its records ended. */
export interface Receipt {
  /** The database has the record. */
  readonly done: () => void;
  /**
   * The database refused the record for good. The record stays, and the reason appears in
   * inspections of the data folder.
   */
  readonly refused: (why: NotKeptError) => void;
}

/** A write that another process acknowledged. */
export interface OthersWrite {
  readonly write: SessionWrite;
  /**
   * Undefined if a living process owns the journal. Then that process marks the record as
   * delivered.
   */
  readonly receipt?: Receipt;
  /** Identifies the record in a living process's journal. */
  readonly place?: string;
  /** The readable and lost parts of the journal. Undefined for an undamaged journal. */
  readonly damaged: DamagedJournal | undefined;
}

/** Adapts the writes of a damaged journal to the steps that the database has. */
interface WriteBridge {
  bridged(write: SessionWrite, attempt: number): Promise<SessionWrite>;
}

/** How a write is delivered. */
export interface Delivery {
  /** Whether an outage only delays the write. */
  readonly persistent: boolean;
  /** Whether an earlier process may have applied the write. */
  readonly seen: boolean;
  /** Whether the write is in this client's journal. */
  readonly journaled: boolean;
  /** Bridges the gaps that lost records left. */
  readonly bridge?: WriteBridge | undefined;
}

/** How a journaled write is delivered. */
export interface JournaledDelivery extends Omit<Delivery, 'persistent'> {
  /** Undefined if no journal holds the write. */
  readonly receipt?: Receipt;
}

/** An acknowledged write and its position among all accepted writes. */
export interface AdoptedWrite {
  readonly write: SessionWrite;
  readonly how: JournaledDelivery;
  readonly nth: number;
}

/** A write that a dead process acknowledged. */
interface LeftWrite extends OthersWrite {
  readonly receipt: Receipt;
}

/**
 * The journal of one client (decision H5). It also holds adopted journals: the first client to
 * start adopts those of dead clients in the data folder (decision F6). Closing keeps all
 * undelivered records on disk.
 */
export class ClientJournal {
  readonly #settings: ClientJournalSettings;
  readonly #own: Journal;
  readonly #adopted = new Set<Journal>();
  readonly #closing = new Set<Promise<void>>();
  readonly #refusals: JournalRefusals;
  /** Adopted journals whose read failed. The next `adoptAll` continues the read. */
  readonly #unread = new Set<UnreadJournal>();
  /** Resolves once every running `adoptAll` has passed on its writes. */
  #adopting: Promise<void> = Promise.resolve();

  private constructor(settings: ClientJournalSettings, own: Journal) {
    this.#settings = settings;
    this.#own = own;
    this.#refusals = new JournalRefusals(settings.onNotice);
  }

  /**
   * Opens a journal for this process in the data folder.
   * @throws {JournalError} `unwritable`, `io`, `no-space` – the folder cannot be used
   */
  static async open(settings: ClientJournalSettings): Promise<ClientJournal> {
    const { dataDir, durability, what, limits } = settings;
    return new ClientJournal(settings, await openJournal(dataDir, { durability, what, ...limits }));
  }

  /** Whether the journal is filling up while the database is down. */
  get nearFull(): boolean {
    return this.#own.nearFull;
  }

  /** Number of records in this and adopted journals that the database has not confirmed. */
  get waiting(): number {
    return [this.#own, ...this.#adopted].reduce((sum, { status }) => sum + status.pending, 0);
  }

  /**
   * Total bytes of the waiting records, and the time of the oldest acknowledgement among them.
   * `oldestAt` is undefined if no record waits.
   */
  get backlog(): { readonly bytes: number; readonly oldestAt: number | undefined } {
    const all = [this.#own, ...this.#adopted].map(({ status }) => status);
    const moments = all.flatMap(({ oldestAt }) => oldestAt ?? []);
    return {
      bytes: all.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0),
      oldestAt: moments.length === 0 ? undefined : Math.min(...moments),
    };
  }

  /**
   * Makes a write durable. If it rejects, the write is not acknowledged.
   * @param requireOurs throws if another process has taken the session. It runs after the append. A
   *   process that takes the session over later finds the record; one that did so earlier may have
   *   missed it.
   */
  async append(write: SessionWrite, requireOurs: () => void = () => undefined): Promise<Receipt> {
    const receipt = this.#receiptOf(this.#own, write, await this.#own.append(encodePayload(encodeWrite(write))));
    try {
      requireOurs();
      return receipt;
    } catch (error) {
      // Take the record back by marking it as done. If the session's new owner has already read it,
      // that owner delivers it.
      receipt.done();
      throw error;
    }
  }

  /** Returns the number of damaged files in the data folder. */
  losses(): Promise<number> {
    return damagedFiles(this.#settings.dataDir);
  }

  /**
   * Adopts the journals of dead processes. Calls `adopt` in order with every waiting write that can
   * be read. Unreadable parts are reported in notices, and their files stay (decision 0011).
   * Resolves once all writes are handed over, including those of earlier calls. It does not wait
   * for their delivery. Rejects if a file cannot be read now. The next call continues at that file.
   */
  adoptAll(adopt: (adopted: LeftWrite) => void): Promise<void> {
    const adopted = this.#adopting.then(() => this.#adoptAll(adopt));
    this.#adopting = adopted.catch(() => undefined);
    return adopted;
  }

  async #adoptAll(adopt: (adopted: LeftWrite) => void): Promise<void> {
    const { dataDir, what, onNotice } = this.#settings;
    for (const unread of this.#unread) await this.#handOver(unread, adopt);
    for (const owner of await adoptableJournals(dataDir)) {
      const journal = await adoptJournal(dataDir, owner, { what }).catch((error: unknown) => {
        onNotice(
          `the journal ${owner} of an ended process was left unchanged, ` +
            `and its records are not delivered: ${messageOf(error)}`,
        );
        return undefined;
      });
      if (journal === undefined) continue;
      this.#adopted.add(journal);
      for (const damage of journal.torn) onNotice(cutNotice(owner, damage));
      const unread = { journal, upto: -1 };
      this.#unread.add(unread);
      await this.#handOver(unread, adopt);
    }
  }

  async #handOver(unread: UnreadJournal, adopt: (adopted: LeftWrite) => void): Promise<void> {
    const { dataDir, onNotice } = this.#settings;
    const { journal } = unread;
    const damaged = journal.damage.length === 0 ? undefined : await readDamaged(dataDir, journal);
    if (damaged !== undefined)
      onNotice(`${lossText(damaged)}; readable records are delivered, and damaged files are kept unchanged (.damaged)`);
    for await (const { sequence, payload } of journal.recover()) {
      if (sequence <= unread.upto) continue;
      const write = readWrite(payload);
      if (write instanceof Error)
        onNotice(`the journal ${journal.owner}: record ${sequence} stays in it and is not delivered: ${write.message}`);
      else adopt({ write, damaged, receipt: this.#receiptOf(journal, write, sequence) });
      unread.upto = sequence;
    }
    this.#unread.delete(unread);
    this.#closeDrained(journal);
  }

  #receiptOf(journal: Journal, write: SessionWrite, sequence: number): Receipt {
    const done = (): void => {
      journal.markDone(sequence);
      this.#refusals.arrived(journal, sequence);
      this.#closeDrained(journal);
    };
    return { done, refused: (why) => this.#refusals.add(journal, { write, sequence, why }) };
  }

  /**
   * Closes an adopted journal once no record waits. It gets no new records, so its files and lock
   * can be removed.
   */
  #closeDrained(journal: Journal): void {
    if (journal.status.pending > 0 || !this.#adopted.delete(journal)) return;
    const closing = journal.close().finally(() => this.#closing.delete(closing));
    // Only a `close` that runs meanwhile reports a failure. The next client removes remaining
    // files.
    closing.catch(() => undefined);
    this.#closing.add(closing);
  }

  /**
   * Waits until the database has the records in other living processes' journals, including the
   * journals that these processes adopted. The wait covers one session, or all records acknowledged
   * before the call. Calls `eachTime` before each check, because a process may end meanwhile.
   * Returns false on timeout.
   */
  async othersDelivered(
    limitMs: number,
    { session, eachTime }: { readonly session: SessionId | undefined; readonly eachTime: () => Promise<void> },
  ): Promise<boolean> {
    const from = Date.now();
    for (;;) {
      await eachTime();
      if (!(await this.othersHold(from, session))) return true;
      if (Date.now() >= from + limitMs) return false;
      // Only the journal of another process shows its progress, so poll it.
      await delay(TIME_LIMITS.otherJournals);
    }
  }

  /**
   * Returns the waiting writes of a session in other processes' journals, in order. Skips writes
   * whose places are in `known`. Changes nothing.
   */
  async heldByOthers(session: SessionId, known: ReadonlySet<string>): Promise<readonly OthersWrite[]> {
    const { dataDir } = this.#settings;
    const held: OthersWrite[] = [];
    for (const journal of await this.#others()) {
      const { owner, damage } = journal;
      const records = await this.#unlessTrimmed(journal, session);
      const fresh = records.filter(({ sequence }) => !known.has(`${owner}:${sequence}`));
      const damaged = damage.length === 0 || fresh.length === 0 ? undefined : await readDamaged(dataDir, journal);
      held.push(...fresh.map(({ write, sequence }) => ({ write, damaged, place: `${owner}:${sequence}` })));
    }
    return held;
  }

  /**
   * Returns the records of a session in a journal. If the journal's process removes a delivered
   * file meanwhile, the read starts again.
   */
  async #unlessTrimmed(journal: InspectedJournal, session: SessionId): Promise<readonly SessionRecord[]> {
    for (let tries = 1; ; tries++) {
      try {
        const records: SessionRecord[] = [];
        for await (const record of recordsOf(this.#settings.dataDir, journal, session)) records.push(record);
        return records;
      } catch (error) {
        if (tries === MOST_READINGS) throw error;
      }
    }
  }

  #others(): Promise<readonly InspectedJournal[]> {
    return inspectJournals(this.#settings.dataDir, {
      except: new Set([this.#own, ...this.#adopted].map(({ owner }) => owner)),
    });
  }

  /**
   * Returns whether another living process holds a record that the database lacks. Checks one
   * session, or all records acknowledged up to `until`.
   */
  async othersHold(until: number, session: SessionId | undefined): Promise<boolean> {
    for (const journal of await this.#others()) {
      const { pending, oldestAt, refused } = journal;
      // Refused records are not in delivery. The note of refusals may be older than the counts, so
      // a check of one session reads its records instead.
      const isRefused = session === undefined && refused.reduce((sum, { records }) => sum + records, 0) >= pending;
      if (oldestAt === undefined || isRefused) continue;
      if (session === undefined ? oldestAt <= until : await this.#holdsSession(journal, session)) return true;
    }
    return false;
  }

  /**
   * Returns whether a record of a session in a journal is in delivery. Also returns true if the
   * process trimmed the journal during the read, so that the caller checks again.
   */
  async #holdsSession(journal: InspectedJournal, session: SessionId): Promise<boolean> {
    try {
      for await (const _record of recordsOf(this.#settings.dataDir, journal, session)) return true;
      return false;
    } catch {
      return true;
    }
  }

  /** Closes this and all adopted journals. Waiting records stay for the next client. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...[this.#own, ...this.#adopted].map((journal) => journal.close()), ...this.#closing]);
  }
}
