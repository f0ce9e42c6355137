import { posix } from 'node:path';
import { named } from '../../filesystem/access/errors.js';
import { canonicalPath, type SessionId, sessionObjectId } from '../../objects/ids.js';
import { type FilesystemSource, filesystemSource, parseSource } from '../../objects/source.js';
import { SessionError } from '../../session/errors.js';
import type { Head, StoreSnapshot } from '../../store/store-snapshot.js';
import type { SessionEnvironment } from './session-environment.js';

/** Folders that a refusal names. */
const MOST_NAMED = 5;

/** What deciding about a session's folders needs of a client. */
type RootsEnvironment = Pick<SessionEnvironment, 'files' | 'shareSessions'>;

/** The folders of its files, for a session that was written before its roots were kept: a folder that any of its files lies in counts. */
async function foldersOfFiles(snapshot: StoreSnapshot, session: SessionId): Promise<readonly FilesystemSource[]> {
  const heads = await snapshot.heads((await snapshot.sets(session)).sets.index);
  const sources = [...heads.values()].flatMap(({ document }) => (document.type === 'file' ? (parseSource(document.source) ?? []) : []));
  return sources.map(({ filesystemId, path }) => filesystemSource(filesystemId, canonicalPath(posix.dirname(path))));
}

/** Which of the folders that a session was worked with below are not those of a client. */
async function rootsElsewhere({ files }: RootsEnvironment, snapshot: StoreSnapshot, head: Head): Promise<readonly FilesystemSource[]> {
  const session = head.document.session_id as SessionId;
  const roots = head.marks.roots ?? (await foldersOfFiles(snapshot, session));
  return roots.filter((root) => !files.shows(root));
}

/**
 * Refuses a session that was worked with below folders which a client may not use: what it holds was read there. One that is not there passes, and for a client
 * that shares sessions every one, without asking the database (divergence 0013).
 * @throws {SessionError} `other-roots`
 */
export async function requireRoots(environment: RootsEnvironment, snapshot: StoreSnapshot, session: SessionId): Promise<void> {
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
    `session ${session} was worked with below ${below}, and this process may use ${access.roots.roots.map(named).join(', ')} only; ` +
      'use another session, start it with a --root that holds those folders, or with --share-sessions',
  );
}

/** The record of roots of a session that a client has open: what it was before, and the client's own folders. */
export function rootsWith(files: SessionEnvironment['files'], before: readonly FilesystemSource[] = []): readonly FilesystemSource[] {
  return [...before.filter((root) => !files.shows(root)), ...files.folders];
}
