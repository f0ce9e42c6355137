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
import type { StepBridge } from './step-bridge.js';
import { encodeWrite } from './write-record.js';

/** How a client keeps what it acknowledges. */
interface ClientJournalSettings {
  readonly dataDir: string;
  readonly durability: Durability;
  /** What this process is called where other processes list it. */
  readonly what: string;
  /** How much may wait for the database; the journal's own bounds where absent. */
  readonly limits?: PendingLimits;
  /** Called with one line about each part of a dead process's journal that could not be read. */
  readonly onNotice: (line: string) => void;
}

/** The notice about bytes at the end of a dead process's journal: they were on their way to the disk when it died, and were never acknowledged. */
function cutNotice(owner: string, { file, offset, length }: JournalDamage): string {
  return length === 0
    ? `the journal ${owner}: ${file} ends at byte ${offset} in the middle of a write; nothing that was acknowledged is missing`
    : `the journal ${owner}: the last ${length} bytes of ${file}, from byte ${offset} on, are no whole record and were left out; they were never acknowledged`;
}

interface SessionRecord {
  readonly write: SessionWrite;
  readonly sequence: number;
}

/** How often a journal is read again whose files its process removes meanwhile. */
const MOST_READINGS = 5;

/** The records of a session that wait in a journal, less those that were refused there. */
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

/** An adopted journal that is not read to its end. */
interface UnreadJournal {
  readonly journal: Journal;
  /** The last record that was handed over. */
  upto: number;
}

/** What a journal is told of one of its records. */
export interface Receipt {
  /** The database has it. */
  readonly done: () => void;
  /** The database refused it for good: it stays, and whoever looks at the data folder is told why. */
  readonly refused: (why: NotKeptError) => void;
}

/** A write that another process acknowledged. */
export interface OthersWrite {
  readonly write: SessionWrite;
  /** Undefined where a living process has the journal, which marks it there. */
  readonly receipt?: Receipt;
  /** Which record of the journal of a living process it is. */
  readonly place?: string;
  /** All that can be read of its journal, and what is lost of that; undefined for a journal without damage. */
  readonly damaged: DamagedJournal | undefined;
}

/** How a write is delivered. */
export interface Delivery {
  /** Whether an outage only delays it. */
  readonly persistent: boolean;
  /** Whether an earlier process may have applied it. */
  readonly seen: boolean;
  /** Whether it is in this client's journal. */
  readonly journaled: boolean;
  /** What leads it over what its journal has lost. */
  readonly bridge?: StepBridge | undefined;
}

/** How a write is delivered whose record lies in a journal. */
export interface JournaledDelivery extends Omit<Delivery, 'persistent'> {
  /** Undefined where no journal holds it. */
  readonly receipt?: Receipt;
}

/** A write that is acknowledged, and its place among all of them. */
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
 * The journal of one client (decision H5), and those that dead clients left in the data folder, which the first one to start takes over (decision F6).
 * Closing leaves on disk what the database does not have yet.
 */
export class ClientJournal {
  readonly #settings: ClientJournalSettings;
  readonly #own: Journal;
  readonly #adopted = new Set<Journal>();
  readonly #closing = new Set<Promise<void>>();
  readonly #refusals: JournalRefusals;
  /** What a failure to read has left, for the next one who asks. */
  readonly #unread = new Set<UnreadJournal>();
  /** When everybody who adopts has handed over what was found. */
  #adopting: Promise<void> = Promise.resolve();

  private constructor(settings: ClientJournalSettings, own: Journal) {
    this.#settings = settings;
    this.#own = own;
    this.#refusals = new JournalRefusals(settings.onNotice);
  }

  /** Opens a journal of this process in the data folder. @throws {JournalError} `unwritable`, `io`, `no-space` – the folder cannot be used */
  static async open(settings: ClientJournalSettings): Promise<ClientJournal> {
    const { dataDir, durability, what, limits } = settings;
    return new ClientJournal(settings, await openJournal(dataDir, { durability, what, ...limits }));
  }

  /** Whether it is filling up while the database is away. */
  get nearFull(): boolean {
    return this.#own.nearFull;
  }

  /** Records of this and of adopted journals that the database is not known to have. */
  get waiting(): number {
    return [this.#own, ...this.#adopted].reduce((sum, { status }) => sum + status.pending, 0);
  }

  /** Bytes of those records, and when the oldest of them was acknowledged; undefined when there is none. */
  get backlog(): { readonly bytes: number; readonly oldestAt: number | undefined } {
    const all = [this.#own, ...this.#adopted].map(({ status }) => status);
    const moments = all.flatMap(({ oldestAt }) => oldestAt ?? []);
    return {
      bytes: all.reduce((sum, { pendingBytes }) => sum + pendingBytes, 0),
      oldestAt: moments.length === 0 ? undefined : Math.min(...moments),
    };
  }

  /** Makes a write durable; rejects, with nothing written, when it cannot. */
  async append(write: SessionWrite): Promise<Receipt> {
    return this.#receiptOf(this.#own, write, await this.#own.append(encodePayload(encodeWrite(write))));
  }

  /** How many damaged files are kept in the data folder. */
  losses(): Promise<number> {
    return damagedFiles(this.#settings.dataDir);
  }

  /**
   * Takes over the journals of dead processes: calls `adopt` with every waiting write that can be read, in order. What cannot be read is told in notices, and its
   * file is kept (decision 0011). Resolves when all are handed over, those of a call before this one too, not when they are delivered. Rejects where a file cannot
   * be read just now; the next call goes on there.
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
          `the journal ${owner} of a process that ended stays as it is, and what it acknowledged is not delivered: ${messageOf(error)}`,
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
      onNotice(`${lossText(damaged)}; what can be read is delivered, and what is damaged is kept as it was (.damaged)`);
    for await (const { sequence, payload } of journal.recover()) {
      if (sequence <= unread.upto) continue;
      const write = readWrite(payload);
      if (write instanceof Error)
        onNotice(`the journal ${journal.owner}: record ${sequence} stays there and is not delivered: ${write.message}`);
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

  /** Closes an adopted journal without waiting records: it takes no new ones, so nobody needs its files and its lock. */
  #closeDrained(journal: Journal): void {
    if (journal.status.pending > 0 || !this.#adopted.delete(journal)) return;
    const closing = journal.close().finally(() => this.#closing.delete(closing));
    // `close` reports a failure; a file that stays is removed by the next client.
    closing.catch(() => undefined);
    this.#closing.add(closing);
  }

  /**
   * Waits until the database has what other living processes hold in their journals, their own and adopted ones, of one session, or of all as far as it was acknowledged
   * before now. Calls `eachTime` before each look: a process may end meanwhile. False when that takes longer than the limit.
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
      // Another process delivers; all that can be seen of it is its journal.
      await delay(TIME_LIMITS.otherJournals);
    }
  }

  /** The writes of a session that wait in the journals of other processes, in their order, but for those whose places are known. Changes nothing. */
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

  /** The records of a session in a journal whose process may remove a delivered file while it is read: then it is read again. */
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
    return inspectJournals(this.#settings.dataDir, { except: new Set([this.#own, ...this.#adopted].map(({ owner }) => owner)) });
  }

  /** Whether another living process holds something of a session, or of any one that it acknowledged before a moment, which is not in the database. */
  async othersHold(until: number, session: SessionId | undefined): Promise<boolean> {
    for (const journal of await this.#others()) {
      const { pending, oldestAt, refused } = journal;
      // What was refused for good is not on its way. The note of it is written after what it says; of one session it is compared with that session's own records.
      const isRefused = session === undefined && refused.reduce((sum, { records }) => sum + records, 0) >= pending;
      if (oldestAt === undefined || isRefused) continue;
      if (session === undefined ? oldestAt <= until : await this.#holdsSession(journal, session)) return true;
    }
    return false;
  }

  /** Whether a record of a session is on its way in a journal; also where its process trimmed it meanwhile, so that it has to be looked at again. */
  async #holdsSession(journal: InspectedJournal, session: SessionId): Promise<boolean> {
    try {
      for await (const _record of recordsOf(this.#settings.dataDir, journal, session)) return true;
      return false;
    } catch {
      return true;
    }
  }

  /** Closes this and all adopted journals; what waits stays for the next client. Idempotent. */
  async close(): Promise<void> {
    await Promise.all([...[this.#own, ...this.#adopted].map((journal) => journal.close()), ...this.#closing]);
  }
}
