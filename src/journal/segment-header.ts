import { crc32 } from 'node:zlib';
import { z } from 'zod';

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
export type HeaderReading =
  | { readonly kind: 'header'; readonly header: SegmentHeader; readonly end: number }
  | { readonly kind: 'newer'; readonly format: number }
  | { readonly kind: 'damaged' };

const MAGIC = Buffer.from('PALJRNL\n');
const FORMAT = 8;
const FORMAT_CRC = 12;
/** The part that every format begins with: magic, format, their checksum. */
const PREAMBLE = 16;
const FACTS = PREAMBLE + 4;

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
export function readSegmentHeader(bytes: Buffer): HeaderReading {
  if (bytes.length < FACTS || bytes.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) return { kind: 'damaged' };
  if (crc32(bytes.subarray(0, FORMAT_CRC)) !== bytes.readUInt32LE(FORMAT_CRC)) return { kind: 'damaged' };
  const format = bytes.readUInt32LE(FORMAT);
  if (format > JOURNAL_FORMAT) return { kind: 'newer', format };
  const end = FACTS + bytes.readUInt32LE(PREAMBLE);
  if (end + 4 > bytes.length || crc32(bytes.subarray(PREAMBLE, end)) !== bytes.readUInt32LE(end)) return { kind: 'damaged' };
  const facts = factsSchema.safeParse(JSON.parse(bytes.toString('utf8', FACTS, end)));
  return facts.success ? { kind: 'header', header: facts.data, end: end + 4 } : { kind: 'damaged' };
}
