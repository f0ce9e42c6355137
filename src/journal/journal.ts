import type { OwnedFile } from '../process/owned-file.js';
import { systemCode } from '../process/system-error.js';
import { deletedFolder, type JournalDamage, JournalError, type JournalLoss, journalFailure } from './errors.js';
import { encodeFrameHeader, FRAME_HEADER_BYTES } from './frame.js';
import { syncFolder } from './journal-folder.js';
import { type JournalRecord, type JournalScan, readRecords } from './read-journal.js';
import { type DoneRecords, type PendingLimits, PendingRecords, type WaitingRecord } from './record-progress.js';
import { RefusedNote, type RefusedRecords } from './refused-note.js';
import { SegmentChain, type SegmentFile } from './segment-chain.js';

/**
 * The failures that an acknowledged record survives: the end of all processes, or also a power
 * loss.
 */
export type Durability = 'process' | 'power';

/** Options of a journal. */
export interface JournalOptions extends PendingLimits {
  /** Default `process`. */
  readonly durability?: Durability;
  /** The name of this program, shown to other processes: `palimpsest mcp`, `palimpsest serve`. */
  readonly what?: string;
  /** Size in bytes at which a new file begins; default 4 MiB. */
  readonly segmentBytes?: number;
  /**
   * Delay between `markDone` and its write; default 50 ms. After a crash in between, delivered
   * records are replayed.
   */
  readonly markDelayMs?: number;
  /**
   * The journal removes its file this long after its last waiting record was delivered, so that no
   * delivered text stays in it. Default: 2 s.
   */
  readonly idleMs?: number;
}

/** The waiting records of a journal. */
export interface JournalStatus {
  readonly pending: number;
  readonly pendingBytes: number;
  /**
   * When the oldest waiting record was acknowledged, milliseconds since 1970; undefined if none
   * waits.
   */
  readonly oldestAt: number | undefined;
  /** True once four fifths of the limit are used. */
  readonly nearFull: boolean;
}

/** The location of a journal, its lock, and the result of scanning its files. */
export interface JournalPlace {
  readonly folder: string;
  readonly owner: string;
  readonly lock: OwnedFile;
  readonly found: JournalScan;
}

interface Append {
  readonly parts: readonly Uint8Array[];
  readonly length: number;
  readonly resolve: (sequence: number) => void;
  readonly reject: (error: unknown) => void;
}

const SEGMENT_BYTES = 4_194_304;
const MARK_DELAY_MS = 50;
const IDLE_MS = 2_000;
/**
 * Stores one process's acknowledged records until the database has them (decision H5). Once
 * `append` resolves, a record survives a kill at any point and is recovered in order until it is
 * marked done. One process writes it. `openJournal` and `adoptJournal` create it.
 */
export class Journal {
  /** Its name, never reused. */
  readonly owner: string;
  /** Unacknowledged bytes that were cut off on adoption. */
  readonly torn: readonly JournalDamage[];
  /** Other bytes that were cut off or skipped on adoption. */
  readonly damage: readonly JournalDamage[];
  /** The acknowledged records lost with the bytes in `damage`. */
  readonly loss: JournalLoss;
  readonly #durability: Durability;
  readonly #markDelayMs: number;
  readonly #resetBytes: number;
  readonly #lock: OwnedFile;
  readonly #chain: SegmentChain;
  readonly #pending: PendingRecords;
  readonly #done: DoneRecords;
  readonly #note: RefusedNote;
  #last: number;
  /** Number of the newest acknowledged record. */
  #acknowledged: number;
  #queue: Append[] = [];
  #flushing: Promise<void> | undefined;
  #markTimer: NodeJS.Timeout | undefined;
  readonly #idleMs: number;
  #idleTimer: NodeJS.Timeout | undefined;
  #markDue = false;
  #nameSynced: SegmentFile | undefined;
  #broken: JournalError | undefined;
  #closing: Promise<void> | undefined;

  constructor({ folder, owner, lock, found }: JournalPlace, options: JournalOptions) {
    const { durability = 'process', segmentBytes = SEGMENT_BYTES, markDelayMs = MARK_DELAY_MS } = options;
    this.#idleMs = options.idleMs ?? IDLE_MS;
    this.owner = owner;
    this.torn = found.torn;
    this.damage = found.corrupt;
    this.loss = found.loss;
    this.#durability = durability;
    this.#markDelayMs = markDelayMs;
    this.#resetBytes = segmentBytes / 4;
    this.#lock = lock;
    this.#chain = new SegmentChain({ folder, owner, segmentBytes, segments: found.segments });
    this.#pending = new PendingRecords(options);
    for (const record of found.waiting) this.#pending.add(record);
    this.#done = found.done;
    this.#note = new RefusedNote(folder, owner);
    this.#last = found.lastSequence;
    this.#acknowledged = found.lastSequence;
    this.#trim();
  }

  get status(): JournalStatus {
    const { count: pending, bytes: pendingBytes, oldest, nearFull } = this.#pending;
    return { pending, pendingBytes, oldestAt: oldest?.at, nearFull };
  }

  /** Whether four fifths of the limit are used. */
  get nearFull(): boolean {
    return this.#pending.nearFull;
  }

  /**
   * Makes a record durable and returns its number, one higher than the previous one. The parts are
   * written in sequence and must not change until the promise settles. Rejects with JournalError
   * `full`, `no-space`, `io` or `closed`; then nothing was written or acknowledged.
   */
  append(parts: readonly Uint8Array[]): Promise<number> {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    return new Promise((resolve, reject) => {
      this.#assertOpen();
      this.#pending.reserve(FRAME_HEADER_BYTES + length);
      this.#queue.push({ parts, length, resolve, reject });
      if (this.#durability === 'power') this.#flushing ??= this.#flush();
      else {
        const appends = this.#takeQueue();
        this.#settle(appends, () => this.#write(appends).records);
      }
    });
  }

  /**
   * Marks a record as stored in the database. Other records, even older ones, may still wait.
   * Unknown numbers are ignored.
   */
  markDone(sequence: number): void {
    if (!this.#pending.remove(sequence)) return;
    this.#done.add(sequence);
    this.#done.addUpTo((this.#pending.oldest?.sequence ?? this.#last + 1) - 1);
    if (this.#closing !== undefined) return;
    this.#trim();
    this.#markDue = true;
    this.#markTimer ??= setTimeout(() => this.#writeMark(), this.#markDelayMs).unref();
    if (this.#pending.count === 0) {
      if (this.#idleTimer === undefined) this.#idleTimer = setTimeout(() => this.#dropIdle(), this.#idleMs).unref();
      else this.#idleTimer.refresh();
    }
  }

  /**
   * Lists in a file beside the journal which waiting records the database refused permanently.
   * `refused` is called when the file is written.
   */
  noteRefused(refused: () => readonly RefusedRecords[]): void {
    if (this.#closing === undefined) this.#note.set(refused);
  }

  /**
   * Yields the records that wait at this moment, in order. Skips a record that is marked done
   * meanwhile.
   */
  recover(): AsyncGenerator<JournalRecord> {
    return readRecords(this.#chain, this.#pending.all(), (sequence) => this.#pending.has(sequence));
  }

  /**
   * Accepts no more records. A journal without waiting records removes its files; one with waiting
   * records can be adopted. Idempotent.
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#markTimer);
    clearTimeout(this.#idleTimer);
    await this.#flushing;
    if (this.#pending.count > 0) this.#writeMark();
    this.#chain.retire();
    this.#trim();
    if (this.#chain.isEmpty) this.#note.set(() => []);
    await this.#note.written();
    if (this.#chain.isEmpty) this.#lock.remove();
    else this.#lock.vacate();
  }

  #assertOpen(): void {
    if (this.#closing !== undefined)
      throw new JournalError('closed', `the journal ${this.owner} is closed; open another one`);
    if (this.#broken !== undefined) throw this.#broken;
  }

  #takeQueue(): readonly Append[] {
    const taken = this.#queue;
    this.#queue = [];
    for (const { length } of taken) this.#pending.unreserve(FRAME_HEADER_BYTES + length);
    return taken;
  }

  /** Writes all appends to the current file, or none of them. */
  #write(appends: readonly Append[]): {
    readonly file: SegmentFile;
    readonly start: number;
    readonly records: readonly WaitingRecord[];
  } {
    const at = Date.now();
    const file = this.#chain.writable(this.#last + 1);
    if (!file.isLinked) throw deletedFolder(this.#chain.folder);
    const start = file.size;
    const parts: Uint8Array[] = [];
    const records: WaitingRecord[] = [];
    let offset = start;
    for (const { parts: payload, length } of appends) {
      const sequence = this.#last + records.length + 1;
      const acknowledged = this.#acknowledged;
      const header = { kind: 'record', length, sequence, acknowledged, done: this.#done.prefix, at } as const;
      parts.push(encodeFrameHeader(header, payload, file.salt), ...payload);
      const bytes = FRAME_HEADER_BYTES + length;
      records.push({ sequence, at, segment: file.segment, offset, bytes });
      offset += bytes;
    }
    try {
      file.write(parts);
    } catch (error) {
      this.#rollBack(file, start);
      throw error;
    }
    for (const record of records) this.#pending.add(record);
    this.#last += records.length;
    return { file, start, records };
  }

  /** Resolves every append with its number, or rejects all of them. */
  #settle(appends: readonly Append[], write: () => readonly WaitingRecord[]): void {
    try {
      const records = write();
      this.#acknowledged = this.#last;
      records.forEach(({ sequence }, i) => {
        appends[i]?.resolve(sequence);
      });
    } catch (error) {
      const { current, folder } = this.#chain;
      const failure =
        systemCode(error) === 'ENOENT'
          ? deletedFolder(folder, error)
          : journalFailure('appending to the journal', current?.path ?? folder, error);
      for (const { reject } of appends) reject(failure);
    }
  }

  /** Writes and syncs the queued appends. Those that arrive during a sync share the next one. */
  async #flush(): Promise<void> {
    while (this.#queue.length > 0) {
      const appends = this.#takeQueue();
      const written = await this.#writeSynced(appends).catch((error: unknown) => ({ error }));
      this.#settle(appends, () => {
        if ('error' in written) throw written.error;
        return written.records;
      });
    }
    this.#flushing = undefined;
  }

  async #writeSynced(appends: readonly Append[]): Promise<{ readonly records: readonly WaitingRecord[] }> {
    if (this.#broken !== undefined) throw this.#broken;
    const { file, start, records } = this.#write(appends);
    try {
      await file.sync();
      if (this.#nameSynced !== file) await syncFolder(this.#chain.folder);
      this.#nameSynced = file;
      return { records };
    } catch (error) {
      for (const { sequence } of records) this.#pending.remove(sequence);
      this.#last -= records.length;
      this.#rollBack(file, start);
      // After a failed sync, the state of the unwritten pages is unknown, so append nothing more to
      // this file.
      this.#chain.retire();
      throw error;
    }
  }

  #rollBack(file: SegmentFile, size: number): void {
    try {
      file.rollBack(size);
    } catch (cause) {
      this.#broken = new JournalError(
        'closed',
        `a failed write to ${file.path} could not be undone, so the journal is closed: ` +
          'check the disk, then restart this process',
        { cause },
      );
    }
  }

  /**
   * Writes a mark of the done records. If it fails, a crash replays more records, which the
   * database recognises.
   */
  #writeMark(): void {
    clearTimeout(this.#markTimer);
    this.#markTimer = undefined;
    if (!this.#markDue || this.#broken !== undefined || this.#flushing !== undefined || this.#chain.isEmpty) return;
    const payload = this.#done.encodeBeyond();
    const header = {
      kind: 'mark',
      length: payload.length,
      sequence: this.#last,
      acknowledged: this.#acknowledged,
      done: this.#done.prefix,
      at: Date.now(),
    } as const;
    try {
      const file = this.#chain.writable(this.#last + 1);
      const start = file.size;
      try {
        file.write([encodeFrameHeader(header, [payload], file.salt), payload]);
        // A new file may have begun, so an older one may be unnecessary.
        this.#trim();
        this.#markDue = false;
      } catch {
        this.#rollBack(file, start);
      }
    } catch {
      // The new file could not be created, so the mark stays due.
    }
  }

  /** Removes the file once the database has all records: an erasure would miss the texts in it. */
  #dropIdle(): void {
    this.#idleTimer = undefined;
    if (this.#pending.count > 0 || this.#flushing !== undefined || this.#closing !== undefined) return;
    this.#chain.retire();
    this.#trim();
  }

  #trim(): void {
    const { current } = this.#chain;
    const isDrained = this.#pending.count === 0 && this.#flushing === undefined;
    if (isDrained && current !== undefined && current.size >= this.#resetBytes) this.#chain.retire();
    for (const segment of this.#chain.trim((number) => this.#pending.inSegment(number))) {
      this.#pending.forgetSegment(segment);
      // The removed file may have contained the newest mark.
      this.#markDue = true;
    }
  }
}
