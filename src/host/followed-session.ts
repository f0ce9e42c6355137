import { sessionLockOwners } from '../journal/session-lock.js';
import type { SessionId } from '../objects/ids.js';

/** The name of the process that follows transcripts, as the owner of its sessions' locks. */
export const FOLLOWER = 'palimpsest watch';

/** Returns whether `palimpsest watch` has a session open. */
export async function isFollowed(dataDir: string, session: SessionId): Promise<boolean> {
  return (await sessionLockOwners(dataDir, session)).some(({ what }) => what === FOLLOWER);
}
