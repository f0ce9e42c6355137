import type { SourceReading } from '../../filesystem/access/read-source.js';
import type { FileObservation } from '../../indexing/decide-file.js';
import type { ObjectId } from '../../objects/ids.js';
import type { SessionState } from '../../session/session-state.js';
import type { CallReport } from './call-report.js';
import { fileObjectId } from './file-access.js';

/** What a call did to files, as the step needs it. */
export interface StepFiles {
  /** What is decided against the database: readings, and mentions of files that the session has not met. */
  readonly observations: readonly FileObservation[];
  /** Files that the call indexed or discovered, in order (decision B5). */
  readonly refs: readonly ObjectId[];
  /** Files that were read whole. */
  readonly activate: readonly ObjectId[];
}

/** Whether a reading leaves an object behind; a file that is not there only concerns objects that are. */
const INDEXES: Readonly<Record<SourceReading['kind'], boolean>> = {
  text: true,
  'large-text': true,
  binary: true,
  missing: false,
  unreachable: false,
  'not-regular': false,
};

/** Sorts out the files of a call. A file that the session has met exists in the database, so mentioning it again needs no look-up [§5.6]. */
export function stepFiles(report: CallReport, state: SessionState): StepFiles {
  const refs = new Set<ObjectId>();
  const activate: ObjectId[] = [];
  const observations: FileObservation[] = [];
  for (const { source, reading, activate: whole } of [...(report.readings ?? []), ...(report.plan?.readings ?? [])]) {
    const id = fileObjectId(source);
    if (INDEXES[reading.kind] || state.has(id)) {
      refs.add(id);
      observations.push({ kind: 'read', source, reading });
    }
    if (whole && reading.kind !== 'binary' && INDEXES[reading.kind]) activate.push(id);
  }
  for (const { source, mtimeMs } of report.mentions ?? []) {
    const id = fileObjectId(source);
    if (!refs.has(id) && !state.has(id)) observations.push({ kind: 'mention', source, mtimeMs });
    refs.add(id);
  }
  return { observations, refs: [...refs], activate };
}
