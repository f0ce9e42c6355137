import { crc32 } from 'node:zlib';
import * as z from 'zod';
import { FRAME_HEADER_BYTES, type FrameHeader, frameAt, isCutOff, nextFrame, payloadAt } from './frame.js';

/** The format of journal files that this version writes and reads. */
export const JOURNAL_FORMAT = 1;

const factsSchema = z.object({
  owner: z.string().min(1),
  segment: z.int().positive(),
  first: z.int().positive(),
  at: z.int().nonnegative(),
});

/** The header of a journal file. */
export interface SegmentHeader {
  readonly owner: string;
  /** Number of the file within its journal, from 1. */
  readonly segment: number;
  /** The number of the first record planned for this file. */
  readonly first: number;
  /** Time of creation, milliseconds since 1970. */
  readonly at: number;
}

/** The result of reading a file's header. */
type HeaderReading =
  | { readonly kind: 'header'; readonly header: SegmentHeader; readonly end: number }
  | { readonly kind: 'newer'; readonly format: number }
  /** The file ends inside its header. */
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'damaged' };

const MAGIC = Buffer.from('PALJRNL\n');
const FORMAT = 8;
const FORMAT_CRC = 12;
/** The part that all formats share: magic, format and their checksum. */
const PREAMBLE = 16;
const FACTS = PREAMBLE + 4;
/** Maximum length of our headers: an owner's name and three numbers. */
export const MOST_HEADER_BYTES = 160;

/** Encodes the header of a journal file. */
export function encodeSegmentHeader(header: SegmentHeader): Buffer {
  const facts = Buffer.from(JSON.stringify(header));
  const bytes = Buffer.alloc(FACTS + facts.length + 4);
  MAGIC.copy(bytes);
  bytes.writeUInt32LE(JOURNAL_FORMAT, FORMAT);
  bytes.writeUInt32LE(crc32(bytes.subarray(0, FORMAT_CRC)), FORMAT_CRC);
  bytes.writeUInt32LE(facts.length, PREAMBLE);
  facts.copy(bytes, FACTS);
  bytes.writeUInt32LE(crc32(bytes.subarray(PREAMBLE, FACTS + facts.length)), FACTS + facts.length);
  return bytes;
}

/** Reads the header of a journal file. A format counts as newer only if its number is undamaged. */
function readSegmentHeader(bytes: Buffer): HeaderReading {
  if (bytes.length < FACTS) return { kind: 'incomplete' };
  if (bytes.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) return { kind: 'damaged' };
  if (crc32(bytes.subarray(0, FORMAT_CRC)) !== bytes.readUInt32LE(FORMAT_CRC)) return { kind: 'damaged' };
  const format = bytes.readUInt32LE(FORMAT);
  if (format > JOURNAL_FORMAT) return { kind: 'newer', format };
  const end = FACTS + bytes.readUInt32LE(PREAMBLE);
  if (end + 4 > bytes.length) return { kind: end + 4 > MOST_HEADER_BYTES ? 'damaged' : 'incomplete' };
  if (crc32(bytes.subarray(PREAMBLE, end)) !== bytes.readUInt32LE(end)) return { kind: 'damaged' };
  const facts = factsSchema.safeParse(JSON.parse(bytes.toString('utf8', FACTS, end)));
  return facts.success ? { kind: 'header', header: facts.data, end: end + 4 } : { kind: 'damaged' };
}

/** A valid frame and its offset in the file. */
export interface ScannedFrame extends FrameHeader {
  readonly offset: number;
  /** The payload of a mark; payloads of records stay on disk. */
  readonly mark: Buffer | undefined;
}

/**
 * A byte range without a valid frame, between frames or after the last one. Its length is 0 if a
 * frame follows but earlier ones are missing.
 */
export interface BadStretch {
  readonly offset: number;
  readonly length: number;
  /** Number of valid frames before it. */
  readonly framesBefore: number;
  /** Whether the file ends in the middle of a write, so that only the end is missing. */
  readonly isCutOff: boolean;
}

/** The content of one journal file. */
export interface SegmentScan {
  /** Undefined if damaged. */
  readonly header: SegmentHeader | undefined;
  readonly frames: readonly ScannedFrame[];
  readonly bad: readonly BadStretch[];
  /** File size in bytes. */
  readonly size: number;
}

/**
 * Finds all valid frames of a journal file, each record once, skipping invalid bytes. The salt
 * comes from the file name, so frames are recognised without the header. For an unknown format,
 * returns its number instead.
 */
export function scanSegment(bytes: Buffer, salt: number): SegmentScan | { readonly newerFormat: number } {
  const reading = readSegmentHeader(bytes);
  if (reading.kind === 'newer') return { newerFormat: reading.format };
  const header = reading.kind === 'header' ? reading.header : undefined;
  const frames: ScannedFrame[] = [];
  const bad: BadStretch[] = [];
  const seen = new Set<number>();
  let offset = reading.kind === 'header' ? reading.end : 0;
  let last = header === undefined ? undefined : header.first - 1;
  let badSince = header === undefined && bytes.length > 0 ? 0 : undefined;
  const endStretch = (isCutOff: boolean): void => {
    const start = badSince ?? offset;
    bad.push({ offset: start, length: offset - start, framesBefore: frames.length, isCutOff });
    badSince = undefined;
  };
  while (offset < bytes.length) {
    const frame = frameAt(bytes, offset, salt);
    if (frame === undefined) {
      badSince ??= offset;
      offset = nextFrame(bytes, offset + 1, salt) ?? bytes.length;
    } else if (frame.kind === 'record' && seen.has(frame.sequence)) {
      // A copy of a record that was already found counts as invalid bytes.
      badSince ??= offset;
      offset += FRAME_HEADER_BYTES + frame.length;
    } else {
      const isNext = last === undefined || frame.sequence === (frame.kind === 'record' ? last + 1 : last);
      if (badSince !== undefined || !isNext) endStretch(false);
      const mark = frame.kind === 'mark' ? Buffer.from(payloadAt(bytes, offset, frame.length)) : undefined;
      frames.push({ ...frame, offset, mark });
      if (frame.kind === 'record') seen.add(frame.sequence);
      last = frame.sequence;
      offset += FRAME_HEADER_BYTES + frame.length;
    }
  }
  if (badSince !== undefined)
    endStretch(badSince === 0 ? reading.kind === 'incomplete' : isCutOff(bytes, badSince, salt));
  return { header, frames, bad, size: bytes.length };
}
