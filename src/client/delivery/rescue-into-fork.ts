import { type ObjectId, type SessionId, sessionId, sessionObjectId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import { forkSession } from './fork-session.js';
import { planWrite } from './plan-write.js';
import { rescuedWrite, rescueId } from './rescue-write.js';
import type { SessionWrite } from './session-write.js';

/** The fork that keeps what a session's former writer had acknowledged. */
export interface Rescue {
  readonly fork: SessionId;
  readonly lease: StoredDocument;
  /** The first step that it does not share with the session. */
  readonly first: number;
  /** The ids that calls have in the fork. */
  readonly renames: Map<ObjectId, ObjectId>;
}

const environmentOf = (store: ObjectStore) => ({ store, clock: Date.now });

/** Makes the fork at the step before the first one that is rescued; an earlier process may have made it already. */
async function beginFork(store: ObjectStore, { session, lease, step }: SessionWrite): Promise<Rescue> {
  if (step === undefined || lease === null || lease === undefined) throw new Error('BUG: only a step of an existing session is rescued');
  const fork = sessionId(rescueId(session, step.seq, Number(lease.epoch ?? 1)));
  try {
    await forkSession(environmentOf(store), session, { id: fork, at: step.seq - 1 });
  } catch (error) {
    if (!(error instanceof SessionError) || error.code !== 'session-exists') throw error;
  }
  const head = (await (await store.latest()).heads([sessionObjectId(fork)])).get(sessionObjectId(fork));
  if (head === undefined) throw new SessionError('unknown-session', `the fork ${fork} was written but cannot be found`);
  return { fork, lease: head.document, first: step.seq, renames: new Map() };
}

/** Writes one step of a lost session into its fork, after those before it. Persistent: an outage only delays it. */
export async function rescueIntoFork(store: ObjectStore, write: SessionWrite, before: Promise<Rescue> | undefined): Promise<Rescue> {
  const rescue = await (before ?? beginFork(store, write));
  const moved = rescuedWrite(write, rescue.fork, rescue.lease, rescue.renames);
  await store.writes.write(rescue.fork, planWrite(store, moved, true), { persistent: true });
  return rescue;
}
