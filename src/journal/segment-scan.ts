import { FRAME_HEADER_BYTES, type FrameHeader, frameAt, nextFrame, payloadAt } from './frame.js';
import { readSegmentHeader, type SegmentHeader } from './segment-header.js';

/** A valid frame and where it stands in its file. */
export interface ScannedFrame extends FrameHeader {
  readonly offset: number;
  /** The payload of a mark; records stay on the disk. */
  readonly mark: Buffer | undefined;
}

/** Bytes between valid frames, or after the last one, that are none. */
export interface BadStretch {
  readonly offset: number;
  readonly length: number;
  /** How many valid frames of the file stand before it. */
  readonly framesBefore: number;
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

/** Whether a frame can follow one with the number `last`; after a damaged stretch numbers may be missing. */
function follows(frame: FrameHeader, last: number | undefined, afterDamage: boolean): boolean {
  if (last === undefined) return true;
  const next = frame.kind === 'record' ? last + 1 : last;
  return afterDamage ? frame.sequence >= next : frame.sequence === next;
}

/**
 * Finds every valid frame in the bytes of a journal file; the salt is its name's, so that frames are recognised without its header.
 * Gives the number of a format that this version does not know instead.
 */
export function scanSegment(bytes: Buffer, salt: number): SegmentScan | { readonly newerFormat: number } {
  const reading = readSegmentHeader(bytes);
  if (reading.kind === 'newer') return { newerFormat: reading.format };
  const header = reading.kind === 'header' ? reading.header : undefined;
  const frames: ScannedFrame[] = [];
  const bad: BadStretch[] = [];
  let offset = reading.kind === 'header' ? reading.end : 0;
  let last = header === undefined ? undefined : header.first - 1;
  let badSince = header === undefined && bytes.length > 0 ? 0 : undefined;
  while (offset < bytes.length) {
    const frame = frameAt(bytes, offset, salt);
    if (frame !== undefined && follows(frame, last, badSince !== undefined)) {
      if (badSince !== undefined) bad.push({ offset: badSince, length: offset - badSince, framesBefore: frames.length });
      badSince = undefined;
      const mark = frame.kind === 'mark' ? Buffer.from(payloadAt(bytes, offset, frame.length)) : undefined;
      frames.push({ ...frame, offset, mark });
      last = frame.sequence;
      offset += FRAME_HEADER_BYTES + frame.length;
    } else {
      badSince ??= offset;
      offset = nextFrame(bytes, offset + 1, salt) ?? bytes.length;
    }
  }
  if (badSince !== undefined) bad.push({ offset: badSince, length: bytes.length - badSince, framesBefore: frames.length });
  return { header, frames, bad, size: bytes.length };
}
