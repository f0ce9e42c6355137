import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { sessionLockOwners } from '../journal/session-lock.js';
import { type SessionId, sessionId } from '../objects/ids.js';
import { pollUntil } from '../process/within-limit.js';
import { defined } from '../values/defined.js';
import { importedSessions } from './imported-sessions.js';
import { ownId } from './own-id.js';
import { readWatchReport, watchOwner } from './watch-report.js';

/** The name of the process that follows transcripts, as the owner of its sessions' locks. */
export const FOLLOWER = 'palimpsest watch';

/** Returns whether `palimpsest watch` has a session open. */
export async function isFollowed(dataDir: string, session: SessionId): Promise<boolean> {
  return (await sessionLockOwners(dataDir, session)).some(({ what }) => what === FOLLOWER);
}

/**
 * Returns whether a transcript's file is named after a session's id, as agents do. A match with a
 * part of another id is not enough, because a client chooses its ids freely.
 */
export function isNamedAfter(path: string, native: string): boolean {
  const name = basename(path);
  const at = name.lastIndexOf(native);
  if (at < 0 || native === '') return false;
  const isBegin = at === 0 || /[-_.]/.test(name[at - 1] ?? '');
  return isBegin && /^\.jsonl?$/.test(name.slice(at + native.length));
}

/** Facts about a call of an agent that identify the agent's session. */
export interface AskedCall {
  /** The agent's own name of its conversation. */
  readonly thread?: string;
  /** The agent's id of the call. */
  readonly callId?: string;
  /** The agent's session that started this process. The agent may have begun another one since. */
  readonly startedBy?: string;
}

/** Maximum time in milliseconds until an agent has written a call into its transcript. */
const WRITTEN_MS = 1_000;
/** Number of bytes at the end of a transcript that are searched for a call that was just made. */
const END_BYTES = 262_144;

/** Minimum length of a call's id. Other transcripts may contain a shorter id by chance. */
const SHORTEST_ID = 12;

/** Returns whether the end of a transcript has a call. False if the file cannot be read. */
async function endHas(path: string, callId: string): Promise<boolean> {
  const file = await open(path, 'r').catch(() => undefined);
  if (file === undefined) return false;
  try {
    const { size } = await file.stat();
    const begin = Math.max(0, size - END_BYTES);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(size - begin), 0, size - begin, begin);
    const end = buffer.subarray(0, bytesRead);
    return end.includes(`"id":${JSON.stringify(callId)}`) || end.includes(`"call_id":${JSON.stringify(callId)}`);
  } catch {
    return false;
  } finally {
    await file.close();
  }
}

/** A session that `palimpsest watch` records. */
export interface WatchedSession {
  readonly session: SessionId;
  /** The agent's working folder. Undefined if the session was recorded only from requests. */
  readonly folder?: string;
}

/** Returns a session that is being followed, by the path of its transcript. */
async function followedNow(
  dataDir: string,
  isIts: (path: string) => boolean | Promise<boolean>,
): Promise<WatchedSession | 'none' | undefined> {
  const [owner, report] = [await watchOwner(dataDir), await readWatchReport(dataDir)];
  if (owner === undefined) return 'none';
  for (const { session, path, folder } of report?.pid === owner.pid ? report.followed : [])
    if (await isIts(path)) return { session: sessionId(session), ...defined({ folder }) };
  return undefined;
}

/**
 * Returns a session that was imported from its transcript. If no process follows it now, the next
 * watcher will.
 */
async function followedLater(dataDir: string, native: string): Promise<WatchedSession | undefined> {
  if ((await readWatchReport(dataDir)) === undefined) return undefined;
  const session = ownId(native);
  const imported = (await importedSessions(dataDir)).get(session);
  return imported === undefined ? undefined : { session, ...defined({ folder: imported.folder }) };
}

/**
 * Returns the session in which `palimpsest watch` records a call. Looks for the conversation that
 * the agent names, then for a transcript with the call, then for the session that started this
 * process. Undefined if all three are unknown.
 */
export async function followedSession(
  dataDir: string,
  { thread, callId, startedBy }: AskedCall,
): Promise<WatchedSession | undefined> {
  if (thread !== undefined) {
    const found = await followedNow(dataDir, (path) => isNamedAfter(path, thread));
    if (found !== undefined && found !== 'none') return found;
    const session = ownId(thread);
    return (await followedLater(dataDir, thread)) ?? ((await isFollowed(dataDir, session)) ? { session } : undefined);
  }
  if (callId === undefined || callId.length < SHORTEST_ID) return undefined;
  const has = (path: string): Promise<boolean> => endHas(path, callId);
  const found = await pollUntil(() => followedNow(dataDir, has), { limitMs: WRITTEN_MS });
  if (found !== undefined && found !== 'none') return found;
  return startedBy === undefined ? undefined : followedLater(dataDir, startedBy);
}
