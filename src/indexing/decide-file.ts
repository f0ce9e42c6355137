import type { SourceReading } from '../filesystem/access/read-source.js';
import type { Sha256 } from '../objects/ids.js';
import type { ObjectVersion } from '../objects/seal.js';
import type { FilesystemSource } from '../objects/source.js';
import { deletedFile, fileStub, indexedFile, nonTextFile } from '../objects/versions.js';
import type { HeadMarks } from '../store/head.js';

/** What indexing did to an object [§5.6]. */
export type IndexOutcome = 'created' | 'updated' | 'unchanged';

/** Files that one call discovers at most; what is left is named in its answer (decision C7). */
export const MOST_DISCOVERED = 2_000;

/**
 * The valid time of a new version (decision F7): when it became true as far as is known, never later than now, and at least 1 ms after the
 * object's previous version, so that equal milliseconds hide nothing.
 */
function versionTime(trueSinceMs: number, nowMs: number, previous: Date | undefined): Date {
  const wanted = Math.min(Math.floor(trueSinceMs), nowMs);
  return new Date(previous === undefined ? wanted : Math.max(wanted, previous.getTime() + 1));
}

/** What a client learned about a file: that it exists (discovery), or what its source holds (full indexing) [§5.6]. */
export type FileObservation =
  | { readonly kind: 'mention'; readonly source: FilesystemSource; readonly mtimeMs: number }
  | { readonly kind: 'read'; readonly source: FilesystemSource; readonly reading: SourceReading };

/** What the database holds of the file at the moment of the decision; undefined when it knows none. */
export interface CurrentFile {
  readonly fileHash: Sha256 | null;
  readonly gone: boolean;
  readonly validTime: Date;
}

/** The version to write; absent when nothing changes. */
export interface FileDecision {
  readonly outcome: IndexOutcome;
  readonly write?: { readonly version: ObjectVersion<'file'>; readonly marks: HeadMarks; readonly validTime: Date };
  /** True for stubs: they must never overwrite what another client wrote in the meantime [§5.6]. */
  readonly onlyIfAbsent?: boolean;
}

const UNCHANGED: FileDecision = { outcome: 'unchanged' };

function updated(
  current: CurrentFile | undefined,
  version: ObjectVersion<'file'>,
  sinceMs: number,
  nowMs: number,
  marks: HeadMarks = {},
): FileDecision {
  const validTime = versionTime(sinceMs, nowMs, current?.validTime);
  return { outcome: current === undefined ? 'created' : 'updated', write: { version, marks, validTime } };
}

type Decide<Kind extends SourceReading['kind']> = (
  reading: Extract<SourceReading, { kind: Kind }>,
  source: FilesystemSource,
  current: CurrentFile | undefined,
  nowMs: number,
) => FileDecision;

/** One rule per way a reading can end; orphans and things that are no files leave the last version as it stands (decision C5, §5.9). */
const BY_READING: { readonly [Kind in SourceReading['kind']]: Decide<Kind> } = {
  text: ({ content, fileHash, mtimeMs }, source, current, now) =>
    current?.fileHash === fileHash ? UNCHANGED : updated(current, indexedFile(source, content, fileHash), mtimeMs, now),
  'large-text': ({ content, fileHash, mtimeMs }, source, current, now) =>
    current?.fileHash === fileHash ? UNCHANGED : updated(current, indexedFile(source, content, fileHash), mtimeMs, now),
  binary: ({ fileHash, mtimeMs }, source, current, now) =>
    current?.fileHash === fileHash ? UNCHANGED : updated(current, nonTextFile(source, fileHash), mtimeMs, now),
  missing: (_reading, source, current, now) =>
    current === undefined || current.gone ? UNCHANGED : updated(current, deletedFile(source), now, now, { gone: true }),
  unreachable: () => UNCHANGED,
  'not-regular': () => UNCHANGED,
};

/**
 * The indexing protocol for one file [§5.6], decided against what the database holds: created, updated or unchanged, and the version to write.
 * Pure; `nowMs` is the moment of acknowledgement.
 */
export function decideFile(observation: FileObservation, current: CurrentFile | undefined, nowMs: number): FileDecision {
  const { source } = observation;
  if (observation.kind === 'read') {
    const decide = BY_READING[observation.reading.kind] as Decide<SourceReading['kind']>;
    return decide(observation.reading as never, source, current, nowMs);
  }
  if (current !== undefined) return UNCHANGED;
  return { ...updated(undefined, fileStub(source), observation.mtimeMs, nowMs), onlyIfAbsent: true };
}
