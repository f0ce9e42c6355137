import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { hashText } from '../objects/hashes.js';
import type { SessionId } from '../objects/ids.js';
import { acquireLock, livingLockOwner, lockFilesAmong } from '../process/lock.js';
import { namesIn, type OwnedFile } from '../process/owned-file.js';
import { identifySelf, processIdentitySchema } from '../process/process-identity.js';
import { systemCode } from '../process/system-error.js';
import { CodedError } from '../values/coded-error.js';
import { messageOf } from '../values/thrown.js';

/** Why this process cannot lock a session. */
export type LeaseErrorCode = 'held' | 'unwritable';

/**
 * Thrown when this process cannot lock a session (divergence F5). `held`: another living process
 * works on it; the message names that process and the remedy. `unwritable`: the lock file cannot be
 * written in the data folder.
 */
export class LeaseError extends CodedError<LeaseErrorCode> {
  override readonly name = 'LeaseError';
}

/**
 * The program name under which an import holds the locks of sessions. Until the import is complete,
 * no document names its texts, so no session may be erased meanwhile.
 */
export const IMPORTER = 'palimpsest import';

const ownerSchema = processIdentitySchema.extend({
  session: z.string(),
  token: z.string().min(1),
  what: z.string(),
  since: z.iso.datetime(),
});

/** The content of a session's lock file. */
type OwnerFile = Readonly<z.infer<typeof ownerSchema>>;

/** Omits the token, which proves ownership. */
const shownSchema = ownerSchema.omit({ token: true });

/** The owner of a session: its process, its program (`palimpsest mcp`) and its start time. */
export type LockOwner = Readonly<z.infer<typeof shownSchema>>;

/** Options for locking a session. */
export interface LockOptions {
  /**
   * The name of this program, shown to processes that are refused: `palimpsest mcp`, `palimpsest
   * serve`.
   */
  readonly what: string;
  /** Takes the lock from a living owner too. That owner notices at its next `isStillOurs`. */
  readonly takeOver?: boolean;
}

/** A session that only this process may change (decision F5). */
export interface SessionLock {
  /** The folder with the lock's file. */
  readonly folder: string;
  /** Returns whether that folder was deleted. */
  isFolderGone(): boolean;
  /**
   * Returns false once another process has taken the session over, and after `release`. Reads one
   * small file; never throws.
   */
  isStillOurs(): boolean;
  /** Releases the lock. Does nothing if the session was taken over. Idempotent. */
  release(): void;
}

/**
 * Returns the name of a session's lock. It is readable and safe on case-insensitive filesystems;
 * its hash keeps similar session names apart.
 */
export function lockName(session: SessionId): string {
  const readable = session.toLowerCase().replaceAll(/[^a-z0-9-]/g, '_');
  return `${readable.slice(0, 60)}-${hashText(session).slice(0, 16)}`;
}

/** Returns the folder of the session locks in a data folder. */
export const locksFolder = (dataDir: string): string => join(dataDir, 'sessions');

function folderError(folder: string, cause: unknown): unknown {
  if (systemCode(cause) === undefined) return cause;
  const why = messageOf(cause);
  const message = `cannot keep session locks in ${folder} (${why}); make it writable or use another data folder`;
  return new LeaseError('unwritable', message, { cause });
}

/**
 * Locks a session for this process in the data folder (decision F5). The lock of a dead process is
 * taken silently. Its start time distinguishes it from a later process with the same pid. If
 * several processes try at once, exactly one succeeds.
 * @throws {LeaseError} held – a living process owns the session and `takeOver` is not set;
 *   unwritable – the lock file cannot be written
 */
export async function acquireSessionLock(
  dataDir: string,
  session: SessionId,
  { what, takeOver = false }: LockOptions,
): Promise<SessionLock> {
  const folder = locksFolder(dataDir);
  const lock = { folder, name: lockName(session), schema: ownerSchema };
  const mine: OwnerFile = {
    ...(await identifySelf()),
    session,
    token: randomUUID(),
    what,
    since: new Date().toISOString(),
  };
  let acquired: OwnedFile | { readonly heldBy: OwnerFile | undefined };
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    acquired = await acquireLock(lock, mine, { takeOver });
  } catch (error) {
    throw folderError(folder, error);
  }
  if (!('heldBy' in acquired))
    return {
      folder,
      isFolderGone: () => !existsSync(folder),
      isStillOurs: acquired.isStillOurs,
      release: acquired.remove,
    };
  const owner = acquired.heldBy;
  throw new LeaseError(
    'held',
    owner === undefined
      ? `several processes are opening session ${session} at once; try again`
      : `session ${session} is open in process ${owner.pid} (${owner.what}) since ${owner.since}; ` +
          `end that process, use another session, or move this one here with --take-over`,
  );
}

/**
 * Returns the living owners of all sessions in a data folder, or of one session. Free sessions and
 * dead owners are left out. Read-only.
 */
export async function sessionLockOwners(dataDir: string, session?: SessionId): Promise<readonly LockOwner[]> {
  const folder = locksFolder(dataDir);
  const wanted = session === undefined ? undefined : lockName(session);
  const files = lockFilesAmong(folder, await namesIn(folder)).filter(
    ({ name }) => wanted === undefined || name === wanted,
  );
  const owners = await Promise.all(files.map((file) => livingLockOwner([file], ownerSchema)));
  return owners.flatMap((owner) => (owner === undefined ? [] : [shownSchema.parse(owner)]));
}
