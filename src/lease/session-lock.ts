import { randomUUID } from 'node:crypto';
import { readFileSync, unlinkSync } from 'node:fs';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { hashText } from '../objects/hashes.js';
import type { SessionId } from '../objects/ids.js';
import { createWholeFile } from '../process/owned-file.js';
import { identifySelf, isAlive, processIdentitySchema } from '../process/process-identity.js';
import { systemCode } from '../process/system-error.js';
import { CodedError } from '../values/coded-error.js';

/** What keeps a session from being locked for this process. */
export type LeaseErrorCode = 'held' | 'unwritable';

/**
 * Thrown when this process cannot have a session to itself (decision F5). `held` means that another living process works on it; the message names it
 * and says what to do. `unwritable` means that the lock could not be kept in the data folder.
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

/** Who holds a session: one process for its whole life, what it is, and since when. */
export type LockOwner = Readonly<z.infer<typeof ownerSchema>>;

/** One generation of a session's lock. A file that cannot be read back whole has no owner: nobody can be behind it. */
export interface LockFile {
  readonly path: string;
  readonly generation: number;
  readonly owner: LockOwner | undefined;
}

const GENERATION = /^(.+)\.(\d{1,15})\.lock$/;

/** Readable and safe on every filesystem, also those that fold case; the hash keeps sessions apart that look alike. */
export function lockName(session: SessionId): string {
  const readable = session.toLowerCase().replaceAll(/[^a-z0-9-]/g, '_');
  return `${readable.slice(0, 60)}-${hashText(session).slice(0, 16)}`;
}

/** The folder of a data folder's session locks. */
export const locksFolder = (dataDir: string): string => join(dataDir, 'sessions');

/** The path of one generation of a session's lock. */
export const lockPath = (folder: string, session: SessionId, generation: number): string =>
  join(folder, `${lockName(session)}.${generation}.lock`);

async function readOwner(path: string): Promise<LockOwner | 'gone' | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return 'gone';
    throw error;
  }
  try {
    return ownerSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The generations of a session's lock that are there, oldest first; of all sessions when none is named. */
export async function lockFiles(folder: string, session?: SessionId): Promise<readonly LockFile[]> {
  const wanted = session === undefined ? undefined : lockName(session);
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  const files: LockFile[] = [];
  for (const name of names) {
    const [, stem, generation] = GENERATION.exec(name) ?? [];
    if (stem === undefined || (wanted !== undefined && stem !== wanted)) continue;
    const path = join(folder, name);
    const owner = await readOwner(path);
    if (owner !== 'gone') files.push({ path, generation: Number(generation), owner });
  }
  return files.sort((a, b) => a.generation - b.generation);
}

/** How a session is locked. */
export interface LockOptions {
  /** What this process is, for whoever is refused: `palimpsest mcp`, `palimpsest serve`. */
  readonly what: string;
  /** Takes the lock from a living owner too, which learns of it at its next `isStillOurs`. */
  readonly takeOver?: boolean;
}

/** A session that this process has to itself (decision F5). */
export interface SessionLock {
  /** Different at every acquisition. */
  readonly token: string;
  /**
   * Whether the session is still this lock's: false from the moment that another process has taken it over, and after `release`. Reads one small file
   * without waiting, so that it can be asked before every acknowledgement; throws nothing.
   */
  isStillOurs(): boolean;
  /** Gives the session free; nothing happens when it was taken over. Idempotent. */
  release(): void;
}

/** How often others may come in between before they are reported instead of waited for: every time one of them got on. */
const ATTEMPTS = 50;

function heldError(session: SessionId, { pid, what, since }: LockOwner): LeaseError {
  return new LeaseError(
    'held',
    `session ${session} is open in process ${pid} (${what}) since ${since}; end that process, use another session, or move this one here with --take-over`,
  );
}

function folderError(folder: string, cause: unknown): unknown {
  if (cause instanceof LeaseError || systemCode(cause) === undefined) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new LeaseError(
    'unwritable',
    `session locks cannot be kept in ${folder} (${reason}); make it writable or use another data folder`,
    {
      cause,
    },
  );
}

async function livingOwner(files: readonly LockFile[]): Promise<LockOwner | undefined> {
  for (const { owner } of files) if (owner !== undefined && (await isAlive(owner))) return owner;
  return undefined;
}

function readToken(path: string): string | undefined {
  try {
    return (JSON.parse(readFileSync(path, 'utf8')) as LockOwner).token;
  } catch {
    return undefined;
  }
}

function lockAt(path: string, token: string): SessionLock {
  let released = false;
  const isStillOurs = (): boolean => !released && readToken(path) === token;
  return {
    token,
    isStillOurs,
    release: () => {
      const ours = isStillOurs();
      released = true;
      if (!ours) return;
      try {
        unlinkSync(path);
      } catch {
        // The data folder is gone or read-only: then this process is known to be dead once it is.
      }
    },
  };
}

/**
 * One attempt: makes the generation after the newest one, which only one process can, then looks whether what it was decided by still stands.
 * Undefined when others came in between.
 */
async function tryAcquire(folder: string, session: SessionId, mine: LockOwner, takeOver: boolean): Promise<SessionLock | undefined> {
  const before = await lockFiles(folder, session);
  const holder = takeOver ? undefined : await livingOwner(before);
  if (holder !== undefined) throw heldError(session, holder);
  const newest = before.at(-1);
  const generation = (newest?.generation ?? 0) + 1;
  const path = lockPath(folder, session, generation);
  if (!(await createWholeFile(path, JSON.stringify(mine)))) return undefined;
  const after = await lockFiles(folder, session);
  const stands = newest === undefined || after.some((file) => file.path === newest.path && file.owner?.token === newest.owner?.token);
  if (!stands || after.at(-1)?.generation !== generation) {
    await rm(path, { force: true });
    return undefined;
  }
  for (const file of before) await rm(file.path, { force: true });
  return lockAt(path, mine.token);
}

/**
 * Locks a session for this process in the data folder (decision F5). The lock of a dead process is taken silently; a process is told from a later
 * one with its pid by when it started. Of several that try at once exactly one succeeds.
 * Throws LeaseError `held`, naming the living owner, unless `takeOver` is set; `unwritable` when the lock cannot be kept.
 */
export async function acquireSessionLock(dataDir: string, session: SessionId, options: LockOptions): Promise<SessionLock> {
  const folder = locksFolder(dataDir);
  const mine: LockOwner = {
    ...(await identifySelf()),
    session,
    token: randomUUID(),
    what: options.what,
    since: new Date().toISOString(),
  };
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      const lock = await tryAcquire(folder, session, mine, options.takeOver ?? false);
      if (lock !== undefined) return lock;
    }
  } catch (error) {
    throw folderError(folder, error);
  }
  throw new LeaseError('held', `session ${session} is being opened by several processes at once; try again`);
}

/** The living process that holds a session; undefined when it is free or its owner died. */
export async function sessionLockOwner(dataDir: string, session: SessionId): Promise<LockOwner | undefined> {
  return livingOwner(await lockFiles(locksFolder(dataDir), session));
}

/** The living owners of all sessions of a data folder, for whoever looks from outside. */
export async function sessionLockOwners(dataDir: string): Promise<readonly LockOwner[]> {
  const living = (await lockFiles(locksFolder(dataDir))).map(async (file) =>
    (await livingOwner([file])) === undefined ? [] : [file.owner],
  );
  return (await Promise.all(living)).flat().filter((owner) => owner !== undefined);
}
