import { randomUUID } from 'node:crypto';
import { link, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import * as z from 'zod';
import { CodedError } from '../values/coded-error.js';
import { draftOf } from './drafts.js';
import { rename } from './held-files.js';
import {
  createWholeFile,
  livingOwner,
  livingOwnerIn,
  namesIn,
  type OwnedFile,
  type OwnerSchema,
  ownedFile,
  textOf,
} from './owned-file.js';
import { identifySelf, type ProcessIdentity, processIdentitySchema } from './process-identity.js';
import { systemCode } from './system-error.js';
import { pollUntil } from './within-limit.js';

/**
 * The reason that a lock was not acquired. `heldBy` is the living owner, or undefined if other
 * processes interfered with every attempt.
 */
export interface HeldLock<Owner> {
  readonly heldBy: Owner | undefined;
}

/**
 * Thrown when a lock cannot be acquired. `held`: a living process kept it longer than the caller
 * waits. `occupied`: the file with its name is not a lock.
 */
export class LockError extends CodedError<'held' | 'occupied'> {
  override readonly name = 'LockError';
}

/** One generation of a lock: the file `<name>.<generation>.lock`. Each new owner creates one. */
export interface LockFile {
  readonly name: string;
  readonly generation: number;
  readonly path: string;
}

/** A lock in an existing folder, and the schema of its owner. */
export interface Lock<Owner extends ProcessIdentity> {
  readonly folder: string;
  readonly name: string;
  readonly schema: OwnerSchema<Owner>;
}

/** Options for acquiring a lock. */
export interface AcquireOptions {
  /**
   * Whether to take the lock even from a living owner. That owner notices it through `isStillOurs`.
   */
  readonly takeOver?: boolean;
  /**
   * Whether to keep older generations until the owner calls `remove`, so that no generation is
   * created twice.
   */
  readonly keepsOlder?: boolean;
}

const GENERATION = /^(.+)\.(\d{1,15})\.lock$/;
/**
 * Maximum attempts before contention is reported. An attempt fails only if another process
 * interferes.
 */
const ATTEMPTS = 50;

/** Returns the locks among the names in a folder, oldest generation first per lock. */
export function lockFilesAmong(folder: string, names: readonly string[]): readonly LockFile[] {
  return names
    .map((file) => ({ file, match: GENERATION.exec(file) }))
    .flatMap(({ file, match }) =>
      match === null ? [] : [{ name: match[1] ?? '', generation: Number(match[2]), path: join(folder, file) }],
    )
    .sort((a, b) => a.generation - b.generation);
}

/** Returns the living process that owns one of these files; undefined if there is none. */
export async function livingLockOwner<Owner extends ProcessIdentity>(
  files: readonly LockFile[],
  schema: OwnerSchema<Owner>,
): Promise<Owner | undefined> {
  for (const { path } of files.toReversed()) {
    const owner = await livingOwner(path, schema);
    if (owner !== undefined) return owner;
  }
  return undefined;
}

async function generationsOf({
  folder,
  name,
}: {
  readonly folder: string;
  readonly name: string;
}): Promise<readonly LockFile[]> {
  return lockFilesAmong(folder, await namesIn(folder)).filter((file) => file.name === name);
}

/**
 * Makes one attempt. Creates the generation after the newest one, which only one process can do.
 * Then checks that the locks on which this decision was based have not changed. Returns undefined
 * if another process interfered.
 */
async function tryAcquire<Owner extends ProcessIdentity>(
  lock: Lock<Owner>,
  content: string,
  options: AcquireOptions,
): Promise<OwnedFile | HeldLock<Owner> | undefined> {
  const before = await generationsOf(lock);
  const owner = options.takeOver ? undefined : await livingLockOwner(before, lock.schema);
  if (owner !== undefined) return { heldBy: owner };
  const newest = before.at(-1);
  const newestText = newest === undefined ? undefined : await textOf(newest.path);
  const generation = (newest?.generation ?? 0) + 1;
  const path = join(lock.folder, `${lock.name}.${generation}.lock`);
  if (!(await createWholeFile(path, content))) return undefined;
  const stands = newest === undefined || (newestText !== undefined && (await textOf(newest.path)) === newestText);
  if (!stands || (await generationsOf(lock)).at(-1)?.generation !== generation) {
    await rm(path, { force: true });
    return undefined;
  }
  const older = before.map((file) => file.path);
  if (options.keepsOlder) return ownedFile(path, content, older);
  for (const one of older) await rm(one, { force: true });
  return ownedFile(path, content);
}

/**
 * Acquires a lock for this process. `mine` is the content of its file and must be unique. Takes the
 * lock of a dead process without a report. The start time distinguishes a dead process from a later
 * one with its pid. If several processes try at the same time, exactly one succeeds. Rejects with
 * system errors.
 */
export async function acquireLock<Owner extends ProcessIdentity>(
  lock: Lock<Owner>,
  mine: Owner,
  options: AcquireOptions = {},
): Promise<OwnedFile | HeldLock<Owner>> {
  const content = JSON.stringify(mine);
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    const result = await tryAcquire(lock, content, options);
    if (result !== undefined) return result;
  }
  return { heldBy: undefined };
}

/** The owner in a lock with one fixed name. */
export const tokenSchema = processIdentitySchema.extend({ token: z.string() });
type TokenOwner = z.infer<typeof tokenSchema>;

/** Returns the content of a new lock of this process. */
export const ownToken = async (): Promise<TokenOwner> => ({ ...(await identifySelf()), token: randomUUID() });

/**
 * Returns the living process that owns the lock with this fixed name. Undefined if the lock is free
 * or its owner died.
 */
export function namedLockOwner(path: string): Promise<ProcessIdentity | undefined> {
  return livingOwner(path, tokenSchema);
}

/**
 * Removes the file of a dead owner. A second lock, with generations, lets one process at a time do
 * so. Earlier versions do not use that lock, so the file is first moved aside and read again. If
 * another process has taken the lock since, its file is put back.
 */
async function removeDead(path: string, seen: string): Promise<void> {
  const guard = { folder: dirname(path), name: `${basename(path)}.takeover`, schema: tokenSchema };
  const guarded = await acquireLock(guard, await ownToken());
  if ('heldBy' in guarded) return;
  try {
    const aside = await draftOf(path);
    if ((await textOf(path)) !== seen) return;
    await rename(path, aside);
    if ((await textOf(aside)) !== seen) await link(aside, path).catch(() => undefined);
    await rm(aside, { force: true });
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
  } finally {
    guarded.remove();
  }
}

/**
 * Storage of a lock with one fixed name. `content` names the owner and is unique to one
 * acquisition.
 */
export interface LockKeeping {
  /** The name of the lock in errors. */
  readonly path: string;
  /** Creates the lock with its whole content. Returns false if the name is taken. */
  take(content: string): Promise<boolean>;
  /** Returns the content of the lock; undefined if it is free. */
  read(): Promise<string | undefined>;
  /** Frees the lock of a dead owner, unless another process has taken it since. */
  removeDead(seen: string): Promise<void>;
  /** Frees the lock if it still has this content. Never throws. */
  release(content: string): void;
}

/** Limits the wait for a living owner. `onWait` is called once, with the owner's pid. */
export interface LockWait {
  readonly limitMs: number;
  readonly signal?: AbortSignal | undefined;
  onWait?(ownerPid: number): void;
}

/**
 * Runs `work` while this process owns a lock. Waits for a living owner and takes over from a dead
 * one.
 * @throws {LockError} held – a living owner kept it longer than `limitMs`
 * @throws {AbortError} the signal fired
 */
export async function withLock<T>(keeping: LockKeeping, options: LockWait, work: () => Promise<T>): Promise<T> {
  const content = JSON.stringify(await ownToken());
  let waitingFor: ProcessIdentity | undefined;
  const taken = await pollUntil(async () => {
    if (await keeping.take(content)) return true;
    const text = await keeping.read();
    if (text === undefined) return undefined;
    const owner = await livingOwnerIn(text, tokenSchema);
    if (owner === undefined) {
      await keeping.removeDead(text);
      // If the caller does not wait, this was the last attempt.
      return (await keeping.take(content)) ? true : undefined;
    }
    if (waitingFor === undefined) options.onWait?.(owner.pid);
    waitingFor = owner;
    return undefined;
  }, options);
  if (taken === undefined) {
    throw new LockError(
      'held',
      `Process ${waitingFor?.pid ?? '?'} has held ${keeping.path} for too long. End that process, then try again.`,
    );
  }
  try {
    return await work();
  } finally {
    keeping.release(content);
  }
}

/** Runs `work` while this process owns the lock file `path`. Throws the errors of `withLock`. */
export function withNamedLock<T>(path: string, options: LockWait, work: () => Promise<T>): Promise<T> {
  const file: LockKeeping = {
    path,
    take: (content) => createWholeFile(path, content),
    read: () => textOf(path),
    removeDead: (seen) => removeDead(path, seen),
    release: (content) => ownedFile(path, content).remove(),
  };
  return withLock(file, options, work);
}
