import { deletedFolder } from '../../journal/errors.js';
import { acquireSessionLock, LeaseError, type SessionLock, sessionLockOwners } from '../../journal/session-lock.js';
import type { SessionId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import type { AssembleSession } from './assemble-session.js';
import type { CallIdRules } from './call-id.js';

/** The settings for locking a session. */
export interface LeaseSettings {
  /** The data folder with the lock files. */
  readonly dataDir: string;
  /** The name of this program in lock files, such as `palimpsest mcp`. */
  readonly what: string;
}

/**
 * Locks a session for this process (decision F5).
 * @throws {SessionError} `lease-held` – another process, which the message names, has the lock, and
 *   `takeOver` is not set
 */
export async function lockSession(
  { dataDir, what }: LeaseSettings,
  session: SessionId,
  takeOver: boolean,
): Promise<SessionLock> {
  try {
    return await acquireSessionLock(dataDir, session, { what, takeOver });
  } catch (error) {
    if (!(error instanceof LeaseError) || error.code !== 'held') throw error;
    throw new SessionError('lease-held', error.message, { cause: error });
  }
}

/**
 * Describes the living process that has a data folder's session open. Undefined if there is none.
 */
export async function holderIn(dataDir: string, session: SessionId): Promise<string | undefined> {
  const [owner] = await sessionLockOwners(dataDir, session);
  return owner === undefined ? undefined : `process ${owner.pid} (${owner.what})`;
}

/**
 * Rejects a session whose lock another process has taken. Without a data folder there is no lock.
 * @throws {SessionError} `taken-over`
 * @throws {JournalError} `unwritable` – the data folder was deleted
 */
export function requireLock(lock: SessionLock | undefined, session: SessionId): void {
  if (lock === undefined || lock.isStillOurs()) return;
  if (lock.isFolderGone()) throw deletedFolder(lock.folder);
  throw new SessionError(
    'taken-over',
    `session ${session} was taken over by another process; to continue it here, take it over with --take-over`,
  );
}

/** The parts of one session. All sessions of a client share their environment. */
export interface SessionParts extends Pick<CallIdRules, 'hasRandomId' | 'losses'> {
  /** Undefined for a client without a data folder. */
  readonly lock: SessionLock | undefined;
  /** Assembles from local knowledge for a sole writer, otherwise from the database. */
  readonly assemble: AssembleSession;
}
