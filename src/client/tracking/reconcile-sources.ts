import { hashSource, type SourceReading, type UnreachableReason } from '../../filesystem/access/read-source.js';
import type { ObjectId, Sha256 } from '../../objects/ids.js';
import type { FilesystemSource } from '../../objects/source.js';
import type { FileObservation } from '../decide-file.js';
import type { FileAccess } from '../file-access.js';
import type { MetadataCache } from '../optimistic/metadata-cache.js';

/** The known state of a file in a session's index [§3.1]. */
export interface KnownFile {
  readonly id: ObjectId;
  readonly source: FilesystemSource;
  /** Null for a stub and for a deleted file. */
  readonly fileHash: Sha256 | null;
  /** Confirmed deleted (decision C3). */
  readonly gone: boolean;
}

/** How a source changed since its last version [§3.6, decision C5]. */
export type SourceState = 'unchanged' | 'changed' | 'deleted' | 'orphaned';

/** A source that cannot be read although it may exist. Its last version stays [§5.9]. */
export interface OrphanedFile {
  readonly id: ObjectId;
  readonly source: FilesystemSource;
  readonly reason: UnreachableReason | 'not-regular';
}

/** The result of reading all sources. */
export interface Reconciliation {
  /**
   * The state of every file in the given order. A deleted file that is still missing counts as
   * unchanged.
   */
  readonly states: ReadonlyMap<ObjectId, SourceState>;
  readonly orphaned: readonly OrphanedFile[];
}

/** How sources are reconciled. */
export interface ReconcileOptions {
  /**
   * Receives changed and deleted files in batches, in the given order. The next batch waits for it,
   * so memory stays bounded. An error in it ends the reconciliation.
   */
  readonly onChanged: (batch: readonly FileObservation[]) => Promise<void>;
  readonly onProgress?: (done: number, total: number) => void;
  readonly signal?: AbortSignal;
}

/** Maximum number of concurrent reads. */
const READS_AT_ONCE = 8;
/** A batch ends at the first of two limits: observations, or UTF-16 units of their texts. */
const BATCH_FILES = 500;
const BATCH_UNITS = 8 * 1_048_576;

/**
 * Returns the files whose sources are read on resume: all that were ever read. Stubs stay unread
 * (reading F1).
 */
export function filesToReconcile(metadata: MetadataCache, index: readonly ObjectId[]): readonly KnownFile[] {
  return index.flatMap((id) => {
    const known = metadata.get(id);
    const source = metadata.source(id);
    if (known?.type !== 'file' || source === undefined || known.state === 'stub') return [];
    return [{ id, source, fileHash: known.fileHash, gone: known.state === 'deleted' }];
  });
}

interface Finding {
  readonly file: KnownFile;
  readonly state: SourceState;
  readonly observation?: FileObservation;
  readonly orphaned?: OrphanedFile;
}

type Judge<Kind extends SourceReading['kind']> = (
  file: KnownFile,
  reading: Extract<SourceReading, { kind: Kind }>,
) => Finding;

function unlessSame(file: KnownFile, reading: Extract<SourceReading, { readonly fileHash: Sha256 }>): Finding {
  if (reading.fileHash === file.fileHash) return { file, state: 'unchanged' };
  return { file, state: 'changed', observation: { kind: 'read', source: file.source, reading } };
}

const orphan = (file: KnownFile, reason: OrphanedFile['reason']): Finding => ({
  file,
  state: 'orphaned',
  orphaned: { id: file.id, source: file.source, reason },
});

const JUDGES: { readonly [Kind in SourceReading['kind']]: Judge<Kind> } = {
  text: unlessSame,
  'large-text': unlessSame,
  binary: unlessSame,
  missing: (file, reading) =>
    file.gone
      ? { file, state: 'unchanged' }
      : { file, state: 'deleted', observation: { kind: 'read', source: file.source, reading } },
  unreachable: (file, { reason }) => orphan(file, reason),
  'not-regular': (file) => orphan(file, 'not-regular'),
};

/**
 * Checks one source. It hashes first, because most sources are unchanged and hashing needs little
 * memory. The bytes decide, never a date.
 */
async function check(files: FileAccess, file: KnownFile, signal: AbortSignal | undefined): Promise<Finding> {
  if (file.fileHash !== null && (await hashSource(files.access, file.source, signal)) === file.fileHash)
    return { file, state: 'unchanged' };
  const reading = await files.read(file.source, signal);
  return (JUDGES[reading.kind] as Judge<SourceReading['kind']>)(file, reading as never);
}

function unitsOf({ observation }: Finding): number {
  if (observation?.kind !== 'read') return 0;
  const { reading } = observation;
  return reading.kind === 'large-text' ? reading.length : reading.kind === 'text' ? reading.content.length : 0;
}

/** Yields the findings in file order, with a bounded number of reads ahead. */
async function* findings(
  files: FileAccess,
  known: readonly KnownFile[],
  signal: AbortSignal | undefined,
): AsyncGenerator<Finding> {
  const ahead: Promise<Finding>[] = [];
  try {
    for (const file of known) {
      const checking = check(files, file, signal);
      // A failure is thrown in file order. Until then, it must not count as unhandled.
      checking.catch(() => undefined);
      ahead.push(checking);
      const first = ahead.length < READS_AT_ONCE ? undefined : ahead.shift();
      if (first !== undefined) yield await first;
    }
    for (let first = ahead.shift(); first !== undefined; first = ahead.shift()) yield await first;
  } finally {
    await Promise.allSettled(ahead);
  }
}

/**
 * Checks the sources of files read before, as on resume [§3.6, step 3]. Changed, recreated and
 * deleted files go to `onChanged` as observations for indexing. Unreachable files and files of a
 * foreign filesystem are orphaned (decisions C5, F8). Writes nothing. Rejects with the abort's
 * reason and with errors of `onChanged`. An unreadable source is never an error.
 */
export async function reconcileSources(
  files: FileAccess,
  known: readonly KnownFile[],
  { onChanged, onProgress, signal }: ReconcileOptions,
): Promise<Reconciliation> {
  const states = new Map<ObjectId, SourceState>();
  const orphaned: OrphanedFile[] = [];
  let batch: FileObservation[] = [];
  let units = 0;
  const flush = async (): Promise<void> => {
    if (batch.length === 0) return;
    const full = batch;
    [batch, units] = [[], 0];
    await onChanged(full);
  };
  for await (const finding of findings(files, known, signal)) {
    states.set(finding.file.id, finding.state);
    if (finding.orphaned !== undefined) orphaned.push(finding.orphaned);
    if (finding.observation !== undefined) batch.push(finding.observation);
    units += unitsOf(finding);
    if (batch.length >= BATCH_FILES || units >= BATCH_UNITS) await flush();
    onProgress?.(states.size, known.length);
  }
  signal?.throwIfAborted();
  await flush();
  return { states, orphaned };
}
