import type { SourceReading } from '../filesystem/access/read-source.js';
import type { FileAuthor } from '../objects/file-author.js';
import type { Sha256 } from '../objects/ids.js';
import type { ObjectVersion } from '../objects/seal.js';
import type { FilesystemSource } from '../objects/source.js';
import { deletedFile, fileStub, indexedFile, nonTextFile } from '../objects/versions.js';
import type { HeadMarks } from '../store/head.js';

/** The effect of indexing on an object [§5.6]. */
export type IndexOutcome = 'created' | 'updated' | 'unchanged';

/** Maximum files that one call registers as stubs. Its answer counts the rest (decision C7). */
export const MOST_DISCOVERED = 2_000;

/**
 * Returns the valid time of a new version (decision F7): the earliest time at which it is known to
 * be true, never in the future. At an equal time one version would hide the other, so it is at
 * least 1 ms after the previous one.
 */
function versionTime(trueSinceMs: number, nowMs: number, previous: Date | undefined): Date {
  const wanted = Math.min(Math.floor(trueSinceMs), nowMs);
  return new Date(previous === undefined ? wanted : Math.max(wanted, previous.getTime() + 1));
}

/**
 * A client's observation of a file [§5.6]: a mention says that it exists (discovery), a reading has
 * the content of its source (full indexing).
 */
export type FileObservation =
  | { readonly kind: 'mention'; readonly source: FilesystemSource; readonly mtimeMs: number }
  | {
      readonly kind: 'read';
      readonly source: FilesystemSource;
      readonly reading: SourceReading;
      /** The author of the change, if the tracker found one. */
      readonly author?: FileAuthor | undefined;
    };

/** Finds evidence of who changed a file that was just read. Never rejects. */
export type FindAuthor = (source: FilesystemSource, reading: SourceReading) => Promise<FileAuthor | undefined>;

/**
 * The file's state in the database at the moment of the decision; undefined if the file is unknown.
 */
export interface CurrentFile {
  readonly fileHash: Sha256 | null;
  readonly gone: boolean;
  readonly validTime: Date;
}

/** The version to write; absent if nothing changes. */
export interface FileDecision {
  readonly outcome: IndexOutcome;
  readonly write?: { readonly version: ObjectVersion<'file'>; readonly marks: HeadMarks; readonly validTime: Date };
  /**
   * True for stubs: they must never overwrite a version that another client wrote in the meantime
   * [§5.6].
   */
  readonly onlyIfAbsent?: boolean;
}

const UNCHANGED: FileDecision = { outcome: 'unchanged' };

/**
 * The input of a decision: the source, its state in the database, and the time of acknowledgement.
 */
interface Known {
  readonly source: FilesystemSource;
  readonly current: CurrentFile | undefined;
  readonly nowMs: number;
}

/**
 * Returns the decision to write a version that is true since `sinceMs`. Its head stores `marks`.
 */
function updated(
  { current, nowMs }: Known,
  version: ObjectVersion<'file'>,
  { sinceMs, marks = {} }: { readonly sinceMs: number; readonly marks?: HeadMarks },
): FileDecision {
  const validTime = versionTime(sinceMs, nowMs, current?.validTime);
  return { outcome: current === undefined ? 'created' : 'updated', write: { version, marks, validTime } };
}

type Decide<Kind extends SourceReading['kind']> = (
  reading: Extract<SourceReading, { kind: Kind }>,
  known: Known,
) => FileDecision;

function decideText(
  { content, fileHash, mtimeMs }: Extract<SourceReading, { kind: 'text' | 'large-text' }>,
  known: Known,
): FileDecision {
  if (known.current?.fileHash === fileHash) return UNCHANGED;
  return updated(known, indexedFile(known.source, content, fileHash), { sinceMs: mtimeMs });
}

/**
 * The rule for each kind of reading. If the source is unreachable or no regular file, the last
 * version stays (decision C5, §5.9).
 */
const BY_READING: { readonly [Kind in SourceReading['kind']]: Decide<Kind> } = {
  text: decideText,
  'large-text': decideText,
  binary: ({ fileHash, mtimeMs }, known) =>
    known.current?.fileHash === fileHash
      ? UNCHANGED
      : updated(known, nonTextFile(known.source, fileHash), { sinceMs: mtimeMs }),
  missing: (_reading, known) =>
    known.current === undefined || known.current.gone
      ? UNCHANGED
      : updated(known, deletedFile(known.source), { sinceMs: known.nowMs, marks: { gone: true } }),
  unreachable: () => UNCHANGED,
  'not-regular': () => UNCHANGED,
};

/**
 * Decides how an observation changes a file in the database [§5.6]: the outcome, and the version to
 * write. Pure; `nowMs` is the time of acknowledgement.
 */
export function decideFile(
  observation: FileObservation,
  current: CurrentFile | undefined,
  nowMs: number,
): FileDecision {
  const { source } = observation;
  if (observation.kind === 'read') {
    const decide = BY_READING[observation.reading.kind] as Decide<SourceReading['kind']>;
    return decide(observation.reading as never, { source, current, nowMs });
  }
  if (current !== undefined) return UNCHANGED;
  return {
    ...updated({ source, current, nowMs }, fileStub(source), { sinceMs: observation.mtimeMs }),
    onlyIfAbsent: true,
  };
}
