import { DocumentError, quoted } from './errors.js';
import { type CanonicalPath, canonicalPath, type FilesystemId, filesystemId } from './ids.js';

/** A file on a filesystem [§2.3]. `path` is canonical, never the path that the agent sees. */
export interface FilesystemSource {
  readonly type: 'filesystem';
  readonly filesystemId: FilesystemId;
  readonly path: CanonicalPath;
}

/** The tagged union of source bindings; immutable for the life of an object [§2.3]. */
export type Source = FilesystemSource;

/** Creates the source binding of a file. */
export function filesystemSource(filesystem: FilesystemId, path: CanonicalPath): FilesystemSource {
  return Object.freeze({ type: 'filesystem', filesystemId: filesystem, path });
}

function parseFilesystem(record: Readonly<Record<string, unknown>>): FilesystemSource {
  const { filesystemId: id, path } = record;
  const extra = Object.keys(record).filter((key) => !['type', 'filesystemId', 'path'].includes(key));
  if (extra.length > 0)
    throw new DocumentError('unknown-field', `a filesystem source has no field ${quoted(extra[0])}`);
  if (typeof id !== 'string' || typeof path !== 'string') {
    throw new DocumentError('missing-field', 'a filesystem source needs the texts filesystemId and path');
  }
  return filesystemSource(filesystemId(id), canonicalPath(path));
}

const PARSERS: Readonly<Record<Source['type'], (record: Readonly<Record<string, unknown>>) => Source>> = {
  filesystem: parseFilesystem,
};

/**
 * Parses a stored source binding. Returns null for unsourced objects. Rejects an unknown type by
 * name (decision B3).
 */
export function parseSource(value: unknown): Source | null {
  if (value === null || value === undefined) return null;
  if (typeof value !== 'object')
    throw new DocumentError('invalid-value', `the source ${quoted(value)} is neither null nor a map`);
  const record = value as Readonly<Record<string, unknown>>;
  const type = record.type;
  if (typeof type !== 'string' || !Object.hasOwn(PARSERS, type)) {
    throw new DocumentError(
      'unknown-source-type',
      `the source type ${quoted(type)} is unknown; known: ${Object.keys(PARSERS).join(', ')}`,
    );
  }
  return PARSERS[type as Source['type']](record);
}
