import { acquireSessionLock, LeaseError, type SessionLock } from '../../lease/session-lock.js';
import type { SessionId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';

/** Where this process keeps its leases, and what it is called there. */
export interface LeaseSettings {
  readonly dataDir: string;
  readonly what: string;
}

/** Takes a session's lease (decision F5). Throws SessionError `lease-held` that names the process which has it, unless it is to be taken over. */
export async function lockSession({ dataDir, what }: LeaseSettings, session: SessionId, takeOver: boolean): Promise<SessionLock> {
  try {
    return await acquireSessionLock(dataDir, session, { what, takeOver });
  } catch (error) {
    if (!(error instanceof LeaseError) || error.code !== 'held') throw error;
    throw new SessionError('lease-held', error.message, { cause: error });
  }
}
