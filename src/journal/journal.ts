import type { OwnedFile } from '../process/owned-file.js';
import { type JournalDamage, JournalError, type JournalLoss, journalFailure } from './errors.js';
import { encodeFrameHeader, FRAME_HEADER_BYTES } from './frame.js';
import { syncFolder } from './journal-folder.js';
import { type JournalRecord, type JournalScan, readRecords } from './read-journal.js';
import { type DoneRecords, type PendingLimits, PendingRecords, type WaitingRecord } from './record-progress.js';
import { RefusedNote, type RefusedRecords } from './refused-note.js';
import { SegmentChain, type SegmentFile } from './segment-chain.js';

/** What an acknowledged record survives: the death of every process, or the loss of power as well. */
export type Durability = 'process' | 'power';

/** How a journal is kept. */
export interface JournalOptions extends PendingLimits {
  /** Default `process`. */
  readonly durability?: Durability;
  /** What this process is, for whoever looks: `palimpsest mcp`, `palimpsest serve`. */
  readonly what?: string;
  /** A file that has grown to this size is followed by a new one; default 4 MiB. */
  readonly segmentBytes?: number;
  /** How long after `markDone` that is written down; default 50 ms. A crash before it replays what was done. */
  readonly markDelayMs?: number;
}

/** What waits in a journal. */
export interface JournalStatus {
  readonly pending: number;
  readonly pendingBytes: number;
  /** When the oldest waiting record was acknowledged, milliseconds since 1970; undefined when none waits. */
  readonly oldestAt: number | undefined;
  /** From four fifths of the bound on. */
  readonly nearFull: boolean;
}

/** Where a journal lies, the lock on it, and what was found in its files. */
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
/**
 * The acknowledged records of one process on their way to the database (decision H5): what `append` has resolved is found again after a kill at any
 * point, in order, until it is marked done. One process writes it; made by `openJournal` and `adoptJournal`.
 */
export class Journal {
  /** Its name, never used for another one. */
  readonly owner: string;
  /** What was cut off when it was adopted and had never been acknowledged. */
  readonly torn: readonly JournalDamage[];
  /** What else was cut off or passed over then. */
  readonly damage: readonly JournalDamage[];
  /** Which acknowledged records that took with it. */
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
  /** Newest number that was acknowledged. */
  #acknowledged: number;
  #queue: Append[] = [];
  #flushing: Promise<void> | undefined;
  #markTimer: NodeJS.Timeout | undefined;
  #markDue = false;
  #nameSynced: SegmentFile | undefined;
  #broken: JournalError | undefined;
  #closing: Promise<void> | undefined;

  constructor({ folder, owner, lock, found }: JournalPlace, options: JournalOptions) {
    const { durability = 'process', segmentBytes = SEGMENT_BYTES, markDelayMs = MARK_DELAY_MS } = options;
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

  /** Whether four fifths of the bound are used. */
  get nearFull(): boolean {
    return this.#pending.nearFull;
  }

  /**
   * Makes a record durable and gives its number, one higher than the record's before. The parts are written one after another and must not be changed
   * until then. Rejects with JournalError `full`, `no-space`, `io` or `closed`; then nothing is written and nothing acknowledged.
   */
  append(payload: Uint8Array | readonly Uint8Array[]): Promise<number> {
    const parts = payload instanceof Uint8Array ? [payload] : payload;
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

  /** Says that the database has a record; others, also older ones, may still wait. Unknown numbers are ignored. */
  markDone(sequence: number): void {
    if (!this.#pending.remove(sequence)) return;
    this.#done.add(sequence);
    this.#done.addUpTo((this.#pending.oldest?.sequence ?? this.#last + 1) - 1);
    if (this.#closing !== undefined) return;
    this.#trim();
    this.#markDue = true;
    this.#markTimer ??= setTimeout(() => this.#writeMark(), this.#markDelayMs).unref();
  }

  /** Says beside the journal which of its waiting records the database refused for good; `refused` is asked when that is written. */
  noteRefused(refused: () => readonly RefusedRecords[]): void {
    if (this.#closing === undefined) this.#note.set(refused);
  }

  /** The records that wait at this moment, in order; one that is marked done in the meantime is left out. */
  recover(): AsyncGenerator<JournalRecord> {
    return readRecords(this.#chain, this.#pending.all(), (sequence) => this.#pending.has(sequence));
  }

  /** Takes no more records. Without waiting ones the journal leaves no file behind, with waiting ones it is free to be adopted. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    clearTimeout(this.#markTimer);
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
    if (this.#closing !== undefined) throw new JournalError('closed', `the journal ${this.owner} is closed; open another one`);
    if (this.#broken !== undefined) throw this.#broken;
  }

  #takeQueue(): readonly Append[] {
    const taken = this.#queue;
    this.#queue = [];
    for (const { length } of taken) this.#pending.unreserve(FRAME_HEADER_BYTES + length);
    return taken;
  }

  /** Writes appends to the file of this moment, all or none of them. */
  #write(appends: readonly Append[]): { readonly file: SegmentFile; readonly start: number; readonly records: readonly WaitingRecord[] } {
    const at = Date.now();
    const file = this.#chain.writable(this.#last + 1);
    const start = file.size;
    const parts: Uint8Array[] = [];
    const records: WaitingRecord[] = [];
    let offset = start;
    for (const { parts: payload, length } of appends) {
      const sequence = this.#last + records.length + 1;
      // Without a sync per record every record before this one is acknowledged, or about to be in the same breath.
      const acknowledged = this.#durability === 'process' ? sequence - 1 : this.#acknowledged;
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

  /** Tells every append its number, or all of them why there is none. */
  #settle(appends: readonly Append[], write: () => readonly WaitingRecord[]): void {
    try {
      const records = write();
      this.#acknowledged = this.#last;
      records.forEach(({ sequence }, i) => {
        appends[i]?.resolve(sequence);
      });
    } catch (error) {
      const failure = journalFailure('appending to the journal', this.#chain.current?.path ?? this.#chain.folder, error);
      for (const { reject } of appends) reject(failure);
    }
  }

  /** What comes while a sync runs shares the next one. */
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
      // What the system made of the pages that it could not write is unknown; nothing more is put behind them.
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
        `a failed write to ${file.path} could not be undone, so the journal takes nothing more: check the disk, then start this process again`,
        { cause },
      );
    }
  }

  /** A note of what is done. It may fail: then a crash replays more, which the database sees through. */
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
        // It may have begun a new file, so that an older one is not needed any more.
        this.#trim();
        this.#markDue = false;
      } catch {
        this.#rollBack(file, start);
      }
    } catch {
      // No file could be made for it.
    }
  }

  #trim(): void {
    const { current } = this.#chain;
    const isDrained = this.#pending.count === 0 && this.#flushing === undefined;
    if (isDrained && current !== undefined && current.size >= this.#resetBytes) this.#chain.retire();
    for (const segment of this.#chain.trim((number) => this.#pending.inSegment(number))) {
      this.#pending.forgetSegment(segment);
      // The notes in it went with it.
      this.#markDue = true;
    }
  }
}
