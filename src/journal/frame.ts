import { crc32 } from 'node:zlib';

/** The kind of a frame: an acknowledged record, or a mark of the records that the database has. */
export type FrameKind = 'record' | 'mark';

const CODES: Readonly<Record<FrameKind, number>> = { record: 1, mark: 2 };
const KINDS = new Map(Object.entries(CODES).map(([kind, code]) => [code, kind as FrameKind]));

/** The header of a frame. */
export interface FrameHeader {
  readonly kind: FrameKind;
  /** Payload length in bytes. */
  readonly length: number;
  /** For a record, its own number. For a mark, the number of the record before it. */
  readonly sequence: number;
  /**
   * All records up to this number had been acknowledged when the frame was written. A missing one
   * is a loss.
   */
  readonly acknowledged: number;
  /** All records up to this number were in the database when the frame was written. */
  readonly done: number;
  /** Time of writing, milliseconds since 1970. */
  readonly at: number;
}

/** Size of a frame's header in bytes. */
export const FRAME_HEADER_BYTES = 44;
/** Maximum payload of a frame, the limit of its length field. */
export const LONGEST_PAYLOAD = 0xffff_ffff;

/**
 * The first byte, 0xff, occurs in no UTF-8 text, so a search for the next frame does not stop
 * inside texts.
 */
const MAGIC = Buffer.from([0xff, 0x50, 0x4a, 0x46]);
const LENGTH = 4;
const SEQUENCE = 8;
const ACKNOWLEDGED = 14;
const DONE = 20;
const AT = 26;
const KIND = 32;
const PAYLOAD_CRC = 36;
const HEADER_CRC = 40;

/**
 * Returns the initial value of a file's checksums. It makes bytes of another file invalid as frames
 * of this one.
 */
export const frameSalt = (fileName: string): number => crc32(fileName);

/** Encodes the header of a frame for a payload in parts. */
export function encodeFrameHeader(header: FrameHeader, payload: readonly Uint8Array[], salt: number): Buffer {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES);
  MAGIC.copy(bytes);
  bytes.writeUInt32LE(header.length, LENGTH);
  bytes.writeUIntLE(header.sequence, SEQUENCE, 6);
  bytes.writeUIntLE(header.acknowledged, ACKNOWLEDGED, 6);
  bytes.writeUIntLE(header.done, DONE, 6);
  bytes.writeUIntLE(header.at, AT, 6);
  bytes.writeUInt8(CODES[header.kind], KIND);
  // Node's crc32 of a view of an empty buffer is 0 and would forget the parts before it.
  const parts = payload.filter((part) => part.length > 0);
  bytes.writeUInt32LE(
    parts.reduce((sum, part) => crc32(part, sum), salt),
    PAYLOAD_CRC,
  );
  bytes.writeUInt32LE(crc32(bytes.subarray(0, HEADER_CRC), salt), HEADER_CRC);
  return bytes;
}

/** Reads the header at an offset; undefined if there is no complete one. */
function headerAt(bytes: Buffer, offset: number, salt: number): FrameHeader | undefined {
  if (offset + FRAME_HEADER_BYTES > bytes.length) return undefined;
  const header = bytes.subarray(offset, offset + FRAME_HEADER_BYTES);
  if (header.compare(MAGIC, 0, MAGIC.length, 0, MAGIC.length) !== 0) return undefined;
  if (crc32(header.subarray(0, HEADER_CRC), salt) !== header.readUInt32LE(HEADER_CRC)) return undefined;
  const kind = KINDS.get(header.readUInt8(KIND));
  if (kind === undefined) return undefined;
  return {
    kind,
    length: header.readUInt32LE(LENGTH),
    sequence: header.readUIntLE(SEQUENCE, 6),
    acknowledged: header.readUIntLE(ACKNOWLEDGED, 6),
    done: header.readUIntLE(DONE, 6),
    at: header.readUIntLE(AT, 6),
  };
}

/** Returns the payload of the frame at an offset. */
export const payloadAt = (bytes: Buffer, offset: number, length: number): Buffer =>
  bytes.subarray(offset + FRAME_HEADER_BYTES, offset + FRAME_HEADER_BYTES + length);

/** Returns the header of the frame at an offset if its checksums are valid; otherwise undefined. */
export function frameAt(bytes: Buffer, offset: number, salt: number): FrameHeader | undefined {
  const header = headerAt(bytes, offset, salt);
  if (header === undefined || offset + FRAME_HEADER_BYTES + header.length > bytes.length) return undefined;
  const stored = bytes.readUInt32LE(offset + PAYLOAD_CRC);
  return crc32(payloadAt(bytes, offset, header.length), salt) === stored ? header : undefined;
}

/** Returns whether the file ends in the middle of the frame at an offset. */
export function isCutOff(bytes: Buffer, offset: number, salt: number): boolean {
  const rest = bytes.length - offset;
  if (rest < FRAME_HEADER_BYTES) return true;
  const header = headerAt(bytes, offset, salt);
  return header !== undefined && rest < FRAME_HEADER_BYTES + header.length;
}

/** Returns the offset of the next valid frame at or after `from`; undefined if there is none. */
export function nextFrame(bytes: Buffer, from: number, salt: number): number | undefined {
  for (let at = bytes.indexOf(MAGIC, from); at >= 0; at = bytes.indexOf(MAGIC, at + 1)) {
    if (frameAt(bytes, at, salt) !== undefined) return at;
  }
  return undefined;
}
