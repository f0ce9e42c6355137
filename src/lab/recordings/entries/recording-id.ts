import { createHash } from 'node:crypto';
import type { RecordingSource } from '../importer.js';

/** An id for a session whose recording has none: out of the recording's first bytes and size, the same on every machine and under every name. */
export function recordingId(source: RecordingSource): string {
  return createHash('sha256').update(source.head).update(`\0${source.size}`).digest('hex').slice(0, 32);
}
