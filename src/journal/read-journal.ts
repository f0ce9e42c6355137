import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../process/system-error.js';
import { corruptError, type JournalDamage, JournalError, journalFailure } from './errors.js';
import { FRAME_HEADER_BYTES, frameAt, frameSalt, payloadAt } from './frame.js';
import { type FolderListing, type SegmentName, segmentFile } from './journal-folder.js';
import { DoneRecords, type WaitingRecord } from './record-progress.js';
import { type BadStretch, JOURNAL_FORMAT, type ScannedFrame, type SegmentScan, scanSegment } from './segment-format.js';

/** What the files of one journal hold together. */
export interface JournalScan {
  /** Numbers of the files, in order. */
  readonly segments: readonly number[];
  /** The records that are not known to be in the database, in order. */
  readonly waiting: readonly WaitingRecord[];
  readonly done: DoneRecords;
  /** Number of the newest record; 0 when there never was one. */
  readonly lastSequence: number;
  /** What was being written when the process or the power went; never acknowledged. */
  readonly torn: readonly JournalDamage[];
  /** What had been written whole and cannot be read any more. */
  readonly corrupt: readonly JournalDamage[];
  /** Numbers of the files with corrupt stretches. */
  readonly corruptSegments: ReadonlySet<number>;
  /** For each torn file the length of what is good. */
  readonly cuts: ReadonlyMap<number, number>;
}

/** One file of a journal and what it holds. */
export interface ScannedSegment extends SegmentName {
  readonly scan: SegmentScan;
}

interface Finding {
  readonly segment: number;
  readonly offset: number;
  readonly length: number;
  /** Number of the last record before it. */
  readonly last: number;
  readonly torn: boolean;
}

/** The number of the first record of a file, as far as it is known. */
const firstOf = ({ header, frames }: SegmentScan): number | undefined => header?.first ?? frames[0]?.sequence;

/** The sequence numbers around a range of frames: the last one before it, and the first one of the next file. */
interface Neighbours {
  readonly last: number;
  readonly firstLater: number | undefined;
}

/**
 * Whether a range of frames was never acknowledged: nothing later knows of an acknowledged record beyond the last one before it. Valid frames may follow it all
 * the same, since a disk that loses power keeps what it likes of what was written after the last sync.
 */
function isTorn(bad: BadStretch, { frames }: SegmentScan, { last, firstLater }: Neighbours): boolean {
  if (firstLater !== undefined && firstLater > last + 1) return false;
  const after = frames.slice(bad.framesBefore);
  const [next] = after;
  if (next === undefined) return true;
  const misses = next.sequence > (next.kind === 'record' ? last + 1 : last);
  return misses && after.every(({ acknowledged }) => acknowledged <= last);
}

/** One pass over the files of a journal, in order. */
class Pass {
  readonly done = new DoneRecords();
  readonly records: WaitingRecord[] = [];
  readonly findings: Finding[] = [];
  last = 0;
  #previous: ScannedSegment | undefined;

  add(file: ScannedSegment, firstLater: number | undefined): void {
    const { segment, scan } = file;
    this.#continueFrom(file);
    let { frames } = scan;
    for (const bad of scan.bad) {
      const last = scan.frames[bad.framesBefore - 1]?.sequence ?? this.last;
      const torn = isTorn(bad, scan, { last, firstLater });
      this.findings.push({ segment, offset: bad.offset, length: torn ? scan.size - bad.offset : bad.length, last, torn });
      if (!torn) continue;
      frames = scan.frames.slice(0, bad.framesBefore);
      break;
    }
    for (const frame of frames) this.#addFrame(segment, frame);
    this.#previous = file;
  }

  /** Between files that are not neighbours others were trimmed; between neighbours no record may be missing. */
  #continueFrom({ segment, scan }: ScannedSegment): void {
    const first = firstOf(scan) ?? this.last + 1;
    const before = this.#previous;
    const judged = this.findings.at(-1)?.segment === before?.segment;
    if (before !== undefined && !judged && before.segment === segment - 1 && first > this.last + 1) {
      this.findings.push({ segment: before.segment, offset: before.scan.size, length: 0, last: this.last, torn: false });
    }
    if (before === undefined || scan.header !== undefined) this.last = Math.max(this.last, first - 1);
  }

  #addFrame(segment: number, { kind, sequence, done, at, offset, length, mark }: ScannedFrame): void {
    this.last = Math.max(this.last, sequence);
    this.done.addUpTo(done);
    if (mark !== undefined) this.done.addEncoded(mark);
    if (kind === 'record') this.records.push({ sequence, at, segment, offset, bytes: FRAME_HEADER_BYTES + length });
  }
}

/** Judges the files of one journal together, in order. Reads and changes nothing. */
export function judgeJournal(folder: string, files: readonly ScannedSegment[]): JournalScan {
  const pass = new Pass();
  files.forEach((file, i) => {
    const later = files.slice(i + 1).map(({ scan }) => firstOf(scan));
    pass.add(
      file,
      later.find((first) => first !== undefined),
    );
  });
  const waiting = pass.records.filter(({ sequence }) => !pass.done.has(sequence));
  const pathOf = new Map(files.map(({ segment, file }) => [segment, join(folder, file)]));
  const damage = (torn: boolean): readonly JournalDamage[] =>
    pass.findings
      .filter((finding) => finding.torn === torn)
      .map(({ segment, offset, length, last }) => ({
        file: pathOf.get(segment) ?? folder,
        offset,
        length,
        readableBefore: waiting.filter(({ sequence }) => sequence <= last).length,
        readableAfter: waiting.filter(({ sequence }) => sequence > last).length,
      }));
  return {
    segments: files.map(({ segment }) => segment),
    waiting,
    done: pass.done,
    lastSequence: pass.last,
    torn: damage(true),
    corrupt: damage(false),
    corruptSegments: new Set(pass.findings.filter(({ torn }) => !torn).map(({ segment }) => segment)),
    cuts: new Map(pass.findings.filter(({ torn }) => torn).map(({ segment, offset }) => [segment, offset])),
  };
}

/** A record that was acknowledged and is not known to be in the database. */
export interface JournalRecord {
  readonly sequence: number;
  /** When it was acknowledged, milliseconds since 1970. */
  readonly at: number;
  readonly payload: Buffer;
}

/** The bytes of a file; undefined when it was trimmed since it was listed. */
async function readSegment(path: string): Promise<Buffer | undefined> {
  try {
    return await readFile(path);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw journalFailure('reading', path, error);
  }
}

/**
 * Reads the files of one journal and judges them; changes nothing.
 * @throws {JournalError} `newer-format` for a file of a later version, `io` or `unwritable` for one that cannot be read
 */
export async function readJournal(folder: string, owner: string, listing: FolderListing): Promise<JournalScan> {
  const files: ScannedSegment[] = [];
  // Newest first: whatever a living process does meanwhile, a file is complete when one after it was seen.
  for (const name of listing.segments.filter((segment) => segment.owner === owner).reverse()) {
    const path = join(folder, name.file);
    const bytes = await readSegment(path);
    if (bytes === undefined) continue;
    const scan = scanSegment(bytes, frameSalt(name.file));
    if ('newerFormat' in scan) {
      throw new JournalError(
        'newer-format',
        `${path} has journal format ${scan.newerFormat}; this version knows formats up to ${JOURNAL_FORMAT}: start the newer version of Palimpsest that wrote it`,
      );
    }
    files.unshift({ ...name, scan });
  }
  return judgeJournal(folder, files);
}

/**
 * Reads waiting records, in order; one that is done in the meantime is left out.
 * @throws {JournalError} `corrupt` for a record that was valid when the journal was opened and is not any more
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
    if (frame?.sequence !== sequence) throw corruptError(owner, [{ file: path, offset, length, readableBefore: 0, readableAfter: 0 }]);
    // A copy, so that one record does not keep a whole file in memory.
    yield { sequence, at, payload: Buffer.from(payloadAt(file.bytes, offset, frame.length)) };
  }
}
