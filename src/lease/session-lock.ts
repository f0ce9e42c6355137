import { randomUUID } from 'node:crypto';
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

/** What keeps a session from being locked for this process. */
export type LeaseErrorCode = 'held' | 'unwritable';

/**
 * Thrown when this process cannot have a session to itself (divergence F5). `held`: another living process works on it; the message names that process and
 * says what to do. `unwritable`: the lock could not be kept in the data folder.
 */
export class LeaseError extends CodedError<LeaseErrorCode> {
  override readonly name = 'LeaseError';
}

const ownerSchema = processIdentitySchema.extend({
  session: z.string(),
  token: z.string().min(1),
  what: z.string(),
  since: z.iso.datetime(),
});

/** What the file of a session's lock says. */
type OwnerFile = Readonly<z.infer<typeof ownerSchema>>;

/** Without the secret that says whose lock it is. */
const shownSchema = ownerSchema.omit({ token: true });

/** Who owns a session: which process, what it is (`palimpsest mcp`), and since when. */
export type LockOwner = Readonly<z.infer<typeof shownSchema>>;

/** How a session is locked. */
export interface LockOptions {
  /** What this process is, for whoever is refused: `palimpsest mcp`, `palimpsest serve`. */
  readonly what: string;
  /** Takes the lock from a living owner too, which learns of it at its next `isStillOurs`. */
  readonly takeOver?: boolean;
}

/** A session that this process has to itself (decision F5). */
export interface SessionLock {
  /** False from the moment that another process took the session over, and after `release`. Costs one read of a small file; never throws. */
  isStillOurs(): boolean;
  /** Ends the ownership; does nothing when the session was taken over. Idempotent. */
  release(): void;
}

/** The name of a session's lock: readable, and safe also on filesystems that fold case; the hash keeps sessions apart that look alike. */
export function lockName(session: SessionId): string {
  const readable = session.toLowerCase().replaceAll(/[^a-z0-9-]/g, '_');
  return `${readable.slice(0, 60)}-${hashText(session).slice(0, 16)}`;
}

/** The folder of a data folder's session locks. */
export const locksFolder = (dataDir: string): string => join(dataDir, 'sessions');

function folderError(folder: string, cause: unknown): unknown {
  if (systemCode(cause) === undefined) return cause;
  const message = `session locks cannot be kept in ${folder} (${messageOf(cause)}); make it writable or use another data folder`;
  return new LeaseError('unwritable', message, { cause });
}

/**
 * Locks a session for this process in the data folder (decision F5). The lock of a dead process is taken silently; a process is told from a later
 * one with its pid by when it started. Of several that try at once exactly one succeeds.
 * @throws {LeaseError} held – a living process owns the session and `takeOver` is not set; unwritable – the lock cannot be kept
 */
export async function acquireSessionLock(
  dataDir: string,
  session: SessionId,
  { what, takeOver = false }: LockOptions,
): Promise<SessionLock> {
  const folder = locksFolder(dataDir);
  const lock = { folder, name: lockName(session), schema: ownerSchema };
  const mine: OwnerFile = { ...(await identifySelf()), session, token: randomUUID(), what, since: new Date().toISOString() };
  let acquired: OwnedFile | { readonly heldBy: OwnerFile | undefined };
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    acquired = await acquireLock(lock, mine, { takeOver });
  } catch (error) {
    throw folderError(folder, error);
  }
  if (!('heldBy' in acquired)) return { isStillOurs: acquired.isStillOurs, release: acquired.remove };
  const owner = acquired.heldBy;
  throw new LeaseError(
    'held',
    owner === undefined
      ? `session ${session} is being opened by several processes at once; try again`
      : `session ${session} is open in process ${owner.pid} (${owner.what}) since ${owner.since}; end that process, use another session, or move this one here with --take-over`,
  );
}

/** The living owners of a data folder's sessions, or of one session; sessions that are free or whose owner died are left out. Changes nothing. */
export async function sessionLockOwners(dataDir: string, session?: SessionId): Promise<readonly LockOwner[]> {
  const folder = locksFolder(dataDir);
  const wanted = session === undefined ? undefined : lockName(session);
  const files = lockFilesAmong(folder, await namesIn(folder)).filter(({ name }) => wanted === undefined || name === wanted);
  const owners = await Promise.all(files.map((file) => livingLockOwner([file], ownerSchema)));
  return owners.flatMap((owner) => (owner === undefined ? [] : [shownSchema.parse(owner)]));
}
