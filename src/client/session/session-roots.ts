import { posix } from 'node:path';
import { named } from '../../filesystem/access/errors.js';
import { canonicalPath, type SessionId, sessionObjectId } from '../../objects/ids.js';
import { type FilesystemSource, filesystemSource, parseSource } from '../../objects/source.js';
import { SessionError } from '../../session/errors.js';
import type { Head } from '../../store/snapshot-rows.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { SessionEnvironment } from './session-environment.js';

/** Maximum number of folders that an error names. */
const MOST_NAMED = 5;

/** The parts of a client that decide about a session's folders. */
type RootsEnvironment = Pick<SessionEnvironment, 'files' | 'shareSessions'>;

/** Returns the folders of a session's files, for a session without recorded roots. */
async function foldersOfFiles(snapshot: StoreSnapshot, session: SessionId): Promise<readonly FilesystemSource[]> {
  const heads = await snapshot.heads((await snapshot.sets(session)).sets.index);
  const sources = [...heads.values()].flatMap(({ document }) =>
    document.type === 'file' ? (parseSource(document.source) ?? []) : [],
  );
  return sources.map(({ filesystemId, path }) => filesystemSource(filesystemId, canonicalPath(posix.dirname(path))));
}

/** Returns the session's recorded folders outside a client's roots. */
async function rootsElsewhere(
  { files }: RootsEnvironment,
  snapshot: StoreSnapshot,
  head: Head,
): Promise<readonly FilesystemSource[]> {
  const session = head.document.session_id as SessionId;
  const roots = head.marks.roots ?? (await foldersOfFiles(snapshot, session));
  return roots.filter((root) => !files.shows(root));
}

/**
 * Rejects a session that used folders outside a client's roots, because its content was read there.
 * A missing session passes. For a client that shares sessions, every session passes without a query
 * (divergence 0013).
 * @throws {SessionError} `other-roots`
 */
export async function requireRoots(
  environment: RootsEnvironment,
  snapshot: StoreSnapshot,
  session: SessionId,
): Promise<void> {
  if (environment.shareSessions) return;
  const id = sessionObjectId(session);
  const head = (await snapshot.heads([id])).get(id);
  if (head === undefined) return;
  const { access } = environment.files;
  const elsewhere = new Set(
    (await rootsElsewhere(environment, snapshot, head)).map(({ path, filesystemId }) =>
      path === '/' ? `${named(path)} of the filesystem ${filesystemId}` : named(path),
    ),
  );
  if (elsewhere.size === 0) return;
  const below = [...elsewhere].slice(0, MOST_NAMED).join(', ');
  throw new SessionError(
    'other-roots',
    `session ${session} used files below ${below}, ` +
      `and this process may use ${access.roots.roots.map(named).join(', ')} only; ` +
      'use another session, start it with a --root that holds those folders, or with --share-sessions',
  );
}

/**
 * Returns the roots to record for a session that a client has open: the earlier ones and the
 * client's folders.
 */
export function rootsWith(
  files: SessionEnvironment['files'],
  before: readonly FilesystemSource[] = [],
): readonly FilesystemSource[] {
  return [...before.filter((root) => !files.shows(root)), ...files.folders];
}
