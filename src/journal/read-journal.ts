import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { systemCode } from '../process/system-code.js';
import { corruptError, JournalError, journalFailure } from './errors.js';
import { frameAt, frameSalt, payloadAt } from './frame.js';
import { type FolderListing, segmentFile } from './journal-folder.js';
import { type JournalScan, judgeJournal, type ScannedSegment, type WaitingRecord } from './journal-scan.js';
import { JOURNAL_FORMAT } from './segment-header.js';
import { scanSegment } from './segment-scan.js';

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
 * Throws JournalError `newer-format` for a file of a later version, `io` or `unwritable` for one that cannot be read.
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
 * Throws JournalError `corrupt` for a record that was valid when the journal was opened and is not any more.
 */
export async function* readRecords(
  folder: string,
  owner: string,
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
