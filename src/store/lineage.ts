import { type SessionId, sessionObjectId } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { StoreError } from './errors.js';
import { type ForkPoint, marksOf } from './head.js';

/** Steps of one session that belong to a fork's history: those from `first` to `last`, both included. */
export interface Stretch {
  readonly session: SessionId;
  readonly first: number;
  /** `Infinity` for the session itself, whose steps go on. */
  readonly last: number;
}

/** Steps to read, both ends included; all of them where absent. */
export interface StepRange {
  readonly first?: number;
  readonly last?: number;
}

/** What a session continues, as its head says at a basis: undefined for a session that is no fork, and for one that is not there. */
export async function forkPointOf(db: DbSnapshot, session: SessionId): Promise<ForkPoint | undefined> {
  const head = await db.entity(sessionObjectId(session));
  return head === undefined ? undefined : marksOf(head).parent;
}

async function ancestorPoint(db: DbSnapshot, session: SessionId, fork: SessionId): Promise<ForkPoint | undefined> {
  const head = await db.entity(sessionObjectId(session));
  if (head === undefined) {
    throw new StoreError('missing-part', `session ${fork} continues session ${session}, which the database does not hold`);
  }
  return marksOf(head).parent;
}

/**
 * Whose steps make up a session, the oldest ancestor first (decision F2): a fork's own steps come after those that it shares with its parent, which
 * may be a fork itself. One look-up for each ancestor. Throws StoreError `missing-part` when one is not there, `corrupt-part` when they form a ring.
 */
export async function lineage(db: DbSnapshot, session: SessionId, parent: ForkPoint | undefined): Promise<readonly Stretch[]> {
  const stretches: Stretch[] = [];
  const met = new Set<SessionId>([session]);
  let [current, point, last]: [SessionId, ForkPoint | undefined, number] = [session, parent, Number.POSITIVE_INFINITY];
  while (point !== undefined) {
    stretches.unshift({ session: current, first: point.seq + 1, last });
    if (met.has(point.session)) throw new StoreError('corrupt-part', `session ${session} is among its own ancestors`);
    met.add(point.session);
    const fork = current;
    // A fork may begin before the point where its parent left its own parent.
    last = Math.min(last, point.seq);
    current = point.session;
    point = await ancestorPoint(db, current, fork);
  }
  return [{ session: current, first: 1, last }, ...stretches].filter((stretch) => stretch.first <= stretch.last);
}
