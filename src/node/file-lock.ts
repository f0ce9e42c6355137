import { randomUUID } from 'node:crypto';
import { link, readFile, rename, rm } from 'node:fs/promises';
import { z } from 'zod';
import { createWholeFile } from '../process/owned-file.js';
import { identifySelf, isAlive, processIdentitySchema } from '../process/process-identity.js';
import { systemCode } from '../process/system-error.js';
import { NodeError } from './errors.js';
import { waitFor } from './pause.js';

const holderSchema = processIdentitySchema.extend({ token: z.string() });
type Holder = z.infer<typeof holderSchema>;

/** How a lock is waited for. */
export interface LockOptions {
  readonly signal?: AbortSignal | undefined;
  /** How long to wait for a living holder; default 15 minutes, the longest first start one can imagine. */
  readonly limitMs?: number;
  /** Called once when another process holds the lock. */
  onWait?(holderPid: number): void;
}

async function readHolder(path: string): Promise<Holder | 'unreadable' | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return holderSchema.parse(JSON.parse(text));
  } catch {
    return 'unreadable';
  }
}

/** The living process that holds the lock; undefined when it is free or its holder died. */
export async function lockHolder(path: string): Promise<Holder | undefined> {
  const holder = await readHolder(path);
  return holder === undefined || holder === 'unreadable' || !(await isAlive(holder)) ? undefined : holder;
}

/**
 * Takes a dead holder's lock away. It is moved aside first and looked at again, because somebody else may have taken it over between the look
 * and the move; then theirs is put back.
 */
async function removeStale(path: string, seen: Holder | 'unreadable'): Promise<void> {
  const aside = `${path}.${randomUUID()}`;
  try {
    await rename(path, aside);
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return;
    throw error;
  }
  const moved = await readHolder(aside);
  const isTheSeenOne = seen === 'unreadable' ? moved === 'unreadable' : moved !== 'unreadable' && moved?.token === seen.token;
  if (!isTheSeenOne) await link(aside, path).catch(() => undefined);
  await rm(aside, { force: true });
}

/**
 * Runs `work` while this process alone holds the lock file, waiting for a living holder and taking over from a dead one.
 * Throws NodeError `locked` when a living holder keeps it beyond the limit, `aborted` when the signal fires.
 */
export async function withLock<T>(path: string, options: LockOptions, work: () => Promise<T>): Promise<T> {
  const mine: Holder = { ...(await identifySelf()), token: randomUUID() };
  let waitingFor: Holder | undefined;
  const taken = await waitFor(
    async () => {
      if (await createWholeFile(path, JSON.stringify(mine))) return true;
      const holder = await readHolder(path);
      if (holder === undefined) return undefined;
      if (holder === 'unreadable' || !(await isAlive(holder))) {
        await removeStale(path, holder);
      } else {
        if (waitingFor === undefined) options.onWait?.(holder.pid);
        waitingFor = holder;
      }
      return undefined;
    },
    { limitMs: options.limitMs ?? 900_000, signal: options.signal },
  );
  if (taken === undefined) {
    throw new NodeError('locked', `Process ${waitingFor?.pid ?? '?'} has held ${path} for too long. End that process, then try again.`);
  }
  try {
    return await work();
  } finally {
    const holder = await readHolder(path).catch(() => undefined);
    if (holder !== undefined && holder !== 'unreadable' && holder.token === mine.token) await rm(path, { force: true });
  }
}
