import { appendFileSync, readFileSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { FRAME_HEADER_BYTES, frameSalt, payloadAt } from '../../src/journal/frame.js';
import { journalFolder, listJournalFolder } from '../../src/journal/journal-folder.js';
import { decodePayload } from '../../src/journal/payload.js';
import { scanSegment } from '../../src/journal/segment-format.js';
import type { Line } from './acknowledged.js';
import type { Random } from './random.js';

/** The damage to the end of a dead process's journal. */
export type Tear = 'none' | 'cut-record' | 'cut-mark' | 'garbage' | 'part-of-a-frame' | 'zeros';

interface WrittenStep {
  readonly step?: { readonly session: string; readonly seq: number; readonly call?: { readonly id: string } };
}

/**
 * Returns whether a record was acknowledged. Records without a step, such as prompts, count as
 * acknowledged.
 */
function wasTold(record: WrittenStep, told: readonly Line[]): boolean {
  const { step } = record;
  if (step === undefined) return true;
  if (step.call !== undefined) return told.some((line) => line.kind === 'call' && line.id === step.call?.id);
  return told.some((line) => line.kind === 'message' && line.session === step.session && line.seq === step.seq);
}

/**
 * Damages the newest journal file like a process that dies while it writes. Cuts into an
 * unacknowledged last frame, or adds bytes that are not a frame. Never touches an acknowledged
 * record.
 */
export async function tearJournal(dataDir: string, told: readonly Line[], random: Random): Promise<Tear> {
  const folder = journalFolder(dataDir);
  const newest = (await listJournalFolder(folder)).segments.at(-1);
  if (newest === undefined) return 'none';
  const path = join(folder, newest.file);
  const bytes = readFileSync(path);
  const scan = scanSegment(bytes, frameSalt(newest.file));
  if ('newerFormat' in scan || scan.bad.length > 0) return 'none';
  const last = scan.frames.at(-1);
  if (last === undefined) return 'none';
  const end = last.offset + FRAME_HEADER_BYTES + last.length;
  const cut = (): void => truncateSync(path, random.between(last.offset + 1, end - 1));
  if (last.kind === 'mark') {
    if (random.chance(0.5)) {
      cut();
      return 'cut-mark';
    }
  } else if (!wasTold(decodePayload(payloadAt(bytes, last.offset, last.length)) as WrittenStep, told)) {
    cut();
    return 'cut-record';
  }
  const kind = random.pick(['garbage', 'part-of-a-frame', 'zeros'] as const);
  const part = bytes.subarray(last.offset, random.between(last.offset + 1, end - 1));
  appendFileSync(
    path,
    {
      garbage: random.bytes(random.between(1, 400)),
      'part-of-a-frame': part,
      zeros: Buffer.alloc(random.between(1, 4_096)),
    }[kind],
  );
  return kind;
}
