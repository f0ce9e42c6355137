import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from '../process/system-error.js';
import {
  corruptError,
  type JournalDamage,
  JournalError,
  type JournalLoss,
  journalFailure,
  type Range,
} from './errors.js';
import { FRAME_HEADER_BYTES, frameAt, frameSalt, payloadAt } from './frame.js';
import { type FolderListing, type SegmentName, segmentFile } from './journal-folder.js';
import { DoneRecords, type WaitingRecord } from './record-progress.js';
import {
  type BadStretch,
  JOURNAL_FORMAT,
  MOST_HEADER_BYTES,
  type ScannedFrame,
  type SegmentScan,
  scanSegment,
} from './segment-format.js';

/** The combined content of one journal's files. */
export interface JournalScan {
  /** File numbers in order. */
  readonly segments: readonly number[];
  /** Records that are not known to be in the database, in order. */
  readonly waiting: readonly WaitingRecord[];
  /** All readable records in order, including the waiting ones. */
  readonly readable: readonly WaitingRecord[];
  readonly done: DoneRecords;
  /** Number of the newest record; 0 if there never was one. */
  readonly lastSequence: number;
  /** Unacknowledged bytes of a write that a kill or power loss interrupted. */
  readonly torn: readonly JournalDamage[];
  /** Unreadable bytes that may have been complete records. */
  readonly corrupt: readonly JournalDamage[];
  /** Lost records: acknowledged and not known to be in the database. */
  readonly loss: JournalLoss;
  /** Numbers of the files with corrupt ranges between readable ones. */
  readonly corruptSegments: ReadonlySet<number>;
  /** For each file with an invalid end: the length of its valid part. */
  readonly cuts: ReadonlyMap<number, { readonly length: number; readonly keepsCopy: boolean }>;
}

/** One file of a journal and its content. */
export interface ScannedSegment extends SegmentName {
  readonly scan: SegmentScan;
}

/**
 * The kind of a bad byte range. `torn`: its bytes were never acknowledged. `lost-end`: the end of a
 * file, which may have contained acknowledged records. `damaged`: readable or known records follow
 * the range.
 */
type FindingKind = 'torn' | 'lost-end' | 'damaged';

interface Finding {
  readonly segment: number;
  readonly offset: number;
  readonly length: number;
  /** Number of the last record before it. */
  readonly last: number;
  readonly kind: FindingKind;
}

/**
 * Returns the number of a file's first record if known. The first file of a journal begins with its
 * first record.
 */
const firstOf = ({ segment, scan }: ScannedSegment): number | undefined =>
  scan.header?.first ?? (segment === 1 ? 1 : scan.frames[0]?.sequence);

/**
 * The sequence numbers around a byte range: the last one before it, and the first one of the next
 * file.
 */
interface Neighbours {
  readonly last: number;
  readonly firstLater: number | undefined;
}

/**
 * Classifies a bad range. It was never acknowledged if all later frames count only records before
 * the range as acknowledged. Valid frames may still follow, because after a power loss the disk may
 * keep any part of the writes since the last sync. The end of a file counts as torn only if it is
 * cut off, or if the next file continues without a gap.
 */
function kindOf(bad: BadStretch, { frames }: SegmentScan, { last, firstLater }: Neighbours): FindingKind {
  if (firstLater !== undefined && firstLater > last + 1) return 'damaged';
  const after = frames.slice(bad.framesBefore);
  const [next] = after;
  if (next === undefined) return bad.isCutOff || firstLater !== undefined ? 'torn' : 'lost-end';
  const misses = next.sequence > (next.kind === 'record' ? last + 1 : last);
  return misses && after.every(({ acknowledged }) => acknowledged <= last) ? 'torn' : 'damaged';
}

/** One pass over the files of a journal, in order. */
class Pass {
  readonly done = new DoneRecords();
  readonly records: WaitingRecord[] = [];
  readonly findings: Finding[] = [];
  /** Records whose files were removed after delivery. */
  readonly #removed: [number, number][] = [];
  /** Whether records of unknown numbers are lost. */
  isUncounted = false;
  last = 0;
  #previous: ScannedSegment | undefined;

  add(file: ScannedSegment, firstLater: number | undefined): void {
    const { segment, scan } = file;
    this.#continueFrom(file);
    let { frames } = scan;
    for (const bad of scan.bad) {
      const last = Math.max(this.last, ...scan.frames.slice(0, bad.framesBefore).map(({ sequence }) => sequence));
      const kind = kindOf(bad, scan, { last, firstLater });
      const isCut = kind !== 'damaged';
      this.findings.push({
        segment,
        offset: bad.offset,
        length: isCut ? scan.size - bad.offset : bad.length,
        last,
        kind,
      });
      if (!isCut) continue;
      this.isUncounted ||= kind === 'lost-end';
      frames = scan.frames.slice(0, bad.framesBefore);
      break;
    }
    for (const frame of frames) this.#addFrame(segment, frame);
    this.#previous = file;
  }

  /**
   * Returns the numbers of acknowledged records that are in no file and not known to be in the
   * database.
   */
  missing(): readonly Range[] {
    const readable = new Set(this.records.map(({ sequence }) => sequence));
    const excused = (n: number): boolean =>
      readable.has(n) || this.done.has(n) || this.#removed.some(([a, b]) => a <= n && n <= b);
    const missing: [number, number][] = [];
    for (let n = this.done.prefix + 1; n <= this.last; n++) {
      if (excused(n)) continue;
      const range = missing.at(-1);
      if (range?.[1] === n - 1) range[1] = n;
      else missing.push([n, n]);
    }
    return missing;
  }

  /**
   * Checks the records between two files. A gap in file numbers means that files were trimmed.
   * Between adjacent files, no record may be missing.
   */
  #continueFrom(file: ScannedSegment): void {
    const { segment, scan } = file;
    const first = firstOf(file) ?? this.last + 1;
    const before = this.#previous;
    const isNeighbour = before?.segment === segment - 1 || segment === 1;
    if (!isNeighbour && first > this.last + 1) {
      this.#removed.push([this.last + 1, first - 1]);
      // Without its header a file does not show whether its first records are affected.
      this.isUncounted ||= scan.header === undefined && (scan.bad[0]?.length ?? 0) > MOST_HEADER_BYTES;
    }
    const judged = this.findings.at(-1)?.segment === before?.segment;
    if (before !== undefined && !judged && isNeighbour && first > this.last + 1) {
      this.findings.push({
        segment: before.segment,
        offset: before.scan.size,
        length: 0,
        last: this.last,
        kind: 'damaged',
      });
    }
    this.last = Math.max(this.last, first - 1);
  }

  #addFrame(segment: number, { kind, sequence, done, at, offset, length, mark }: ScannedFrame): void {
    this.last = Math.max(this.last, sequence);
    this.done.addUpTo(done);
    if (mark !== undefined) this.done.addEncoded(mark);
    if (kind === 'record') this.records.push({ sequence, at, segment, offset, bytes: FRAME_HEADER_BYTES + length });
  }
}

/** Checks the files of one journal together, in order. Pure. */
export function judgeJournal(folder: string, files: readonly ScannedSegment[]): JournalScan {
  const pass = new Pass();
  files.forEach((file, i) => {
    const later = files.slice(i + 1).map(firstOf);
    pass.add(
      file,
      later.find((first) => first !== undefined),
    );
  });
  const readable = pass.records.toSorted((a, b) => a.sequence - b.sequence);
  const waiting = readable.filter(({ sequence }) => !pass.done.has(sequence));
  const pathOf = new Map(files.map(({ segment, file }) => [segment, join(folder, file)]));
  const damage = (torn: boolean): readonly JournalDamage[] =>
    pass.findings
      .filter(({ kind }) => (kind === 'torn') === torn)
      .map(({ segment, offset, length, last }) => ({
        file: pathOf.get(segment) ?? folder,
        offset,
        length,
        readableBefore: waiting.filter(({ sequence }) => sequence <= last).length,
        readableAfter: waiting.filter(({ sequence }) => sequence > last).length,
      }));
  const cuts = pass.findings.filter(({ kind }) => kind !== 'damaged');
  return {
    segments: files.map(({ segment }) => segment),
    waiting,
    readable,
    done: pass.done,
    lastSequence: pass.last,
    torn: damage(true),
    corrupt: damage(false),
    loss: { records: pass.missing(), isUncounted: pass.isUncounted },
    corruptSegments: new Set(pass.findings.filter(({ kind }) => kind === 'damaged').map(({ segment }) => segment)),
    cuts: new Map(
      cuts.map(({ segment, offset, kind }) => [segment, { length: offset, keepsCopy: kind === 'lost-end' }]),
    ),
  };
}

/** An acknowledged record that is not known to be in the database. */
export interface JournalRecord {
  readonly sequence: number;
  /** Time of acknowledgement, milliseconds since 1970. */
  readonly at: number;
  readonly payload: Buffer;
}

/** Returns the bytes of a file; undefined if it was trimmed since the listing. */
function readSegment(path: string): Promise<Buffer | undefined> {
  return unlessMissing(readFile(path)).catch((error: unknown) => {
    throw journalFailure('reading', path, error);
  });
}

/**
 * Reads and checks the files of one journal. Read-only.
 * @throws {JournalError} `newer-format` for a file of a later version, `io` or `unwritable` for one
 *   that cannot be read
 */
export async function readJournal(folder: string, owner: string, listing: FolderListing): Promise<JournalScan> {
  const files: ScannedSegment[] = [];
  // Read the newest file first: a file is complete once a later one was read, even while its
  // process writes.
  for (const name of listing.segments.filter((segment) => segment.owner === owner).reverse()) {
    const path = join(folder, name.file);
    const bytes = await readSegment(path);
    if (bytes === undefined) continue;
    const scan = scanSegment(bytes, frameSalt(name.file));
    if ('newerFormat' in scan) {
      throw new JournalError(
        'newer-format',
        `${path} has journal format ${scan.newerFormat}; this version knows formats up to ${JOURNAL_FORMAT}: ` +
          'start the newer version of Palimpsest that wrote it',
      );
    }
    files.unshift({ ...name, scan });
  }
  return judgeJournal(folder, files);
}

/**
 * Yields waiting records in order. Skips a record that is done meanwhile.
 * @throws {JournalError} `corrupt` if a record became invalid after the journal was opened
 */
export async function* readRecords(
  { folder, owner }: { readonly folder: string; readonly owner: string },
  records: readonly WaitingRecord[],
  isWaiting: (sequence: number) => boolean,
): AsyncGenerator<JournalRecord> {
  let file: { readonly segment: number; readonly bytes: Buffer } | undefined;
  for (const { sequence, at, segment, offset, bytes: length } of records) {
    if (!isWaiting(sequence)) continue;
    const name = segmentFile(owner, segment);
    const path = join(folder, name);
    if (file?.segment !== segment) file = { segment, bytes: (await readSegment(path)) ?? Buffer.alloc(0) };
    const frame = frameAt(file.bytes, offset, frameSalt(name));
    if (frame?.sequence !== sequence)
      throw corruptError(owner, [{ file: path, offset, length, readableBefore: 0, readableAfter: 0 }]);
    // Copied, so that one record does not keep a whole file in memory.
    yield { sequence, at, payload: Buffer.from(payloadAt(file.bytes, offset, frame.length)) };
  }
}
