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

/** What a journal file says of itself. */
export interface SegmentHeader {
  readonly owner: string;
  /** Number of the file among those of its owner, from 1. */
  readonly segment: number;
  /** The number of the first record that was to be written into it. */
  readonly first: number;
  /** When it was made, milliseconds since 1970. */
  readonly at: number;
}

/** What is at the beginning of a journal file. */
type HeaderReading =
  | { readonly kind: 'header'; readonly header: SegmentHeader; readonly end: number }
  | { readonly kind: 'newer'; readonly format: number }
  /** The file ends before its header does. */
  | { readonly kind: 'incomplete' }
  | { readonly kind: 'damaged' };

const MAGIC = Buffer.from('PALJRNL\n');
const FORMAT = 8;
const FORMAT_CRC = 12;
/** The part that every format begins with: magic, format, their checksum. */
const PREAMBLE = 16;
const FACTS = PREAMBLE + 4;
/** No header of ours is longer: an owner's name and three numbers. */
export const MOST_HEADER_BYTES = 160;

/** The bytes at the beginning of a journal file. */
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

/** Reads the beginning of a journal file. A format is called newer only where its number is undamaged. */
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

/** A valid frame and where it stands in its file. */
export interface ScannedFrame extends FrameHeader {
  readonly offset: number;
  /** The payload of a mark; records stay on the disk. */
  readonly mark: Buffer | undefined;
}

/** Bytes between valid frames, or after the last one, that are none; of no length where a frame stands that others have to come before. */
export interface BadStretch {
  readonly offset: number;
  readonly length: number;
  /** How many valid frames of the file stand before it. */
  readonly framesBefore: number;
  /** Whether the file ends in the middle of a write: only the end of what is there is missing. */
  readonly isCutOff: boolean;
}

/** What one journal file holds. */
export interface SegmentScan {
  /** Undefined when it is damaged. */
  readonly header: SegmentHeader | undefined;
  readonly frames: readonly ScannedFrame[];
  readonly bad: readonly BadStretch[];
  /** Length of the file in bytes. */
  readonly size: number;
}

/**
 * Finds every valid frame in the bytes of a journal file, each record once, whatever stands between them; the salt is its name's, so that frames are recognised
 * without its header. Gives the number of a format that this version does not know instead.
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
      // A copy of a record that was found already.
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
  if (badSince !== undefined) endStretch(badSince === 0 ? reading.kind === 'incomplete' : isCutOff(bytes, badSince, salt));
  return { header, frames, bad, size: bytes.length };
}
