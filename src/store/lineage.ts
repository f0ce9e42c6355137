import { type SessionId, sessionObjectId } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { StoreError } from './errors.js';
import { type ForkPoint, marksOf } from './head.js';

/** Steps of one session that belong to a fork's history: those from `first` to `last`, both included. */
export interface LineageSegment {
  readonly session: SessionId;
  readonly first: number;
  /** `Infinity` for the session itself, whose steps go on. */
  readonly last: number;
}

/** Whose steps make up a session (decision F2): segments of its ancestors, the oldest first, then its own. */
export interface Lineage {
  readonly session: SessionId;
  readonly segments: readonly LineageSegment[];
}

/** Steps to read, both ends included; all of them where absent. */
export interface StepRange {
  readonly first?: number;
  readonly last?: number;
}

/** The session that wrote a step of a lineage; undefined for a step that no segment holds. */
export function ownerOf({ segments }: Lineage, seq: number): SessionId | undefined {
  return segments.find(({ first, last }) => first <= seq && seq <= last)?.session;
}

/** Where a session left its parent, as its head says: undefined for a session that is no fork, and for one that the database does not hold. */
export async function forkPointOf(db: DbSnapshot, session: SessionId): Promise<ForkPoint | undefined> {
  const head = await db.entity(sessionObjectId(session));
  return head === undefined ? undefined : marksOf(head).parent;
}

/** The lineage of a session that continues none, and of one that the database does not hold. */
export function withoutParent(session: SessionId): Lineage {
  return { session, segments: [{ session, first: 1, last: Number.POSITIVE_INFINITY }] };
}

/**
 * The lineage of a session, the same at every basis that holds it, from the fork point that its head names: a fork's parent may be a fork itself. One look-up for each
 * ancestor.
 *
 * @throws {StoreError} `missing-part` – an ancestor is not there; `corrupt-part` – a session is among its own ancestors
 */
export async function lineageFrom(db: DbSnapshot, session: SessionId, parent: ForkPoint | undefined): Promise<Lineage> {
  const segments: LineageSegment[] = [];
  const visited = new Set<SessionId>([session]);
  let [current, point, last]: [SessionId, ForkPoint | undefined, number] = [session, parent, Number.POSITIVE_INFINITY];
  while (point !== undefined) {
    segments.unshift({ session: current, first: point.seq + 1, last });
    if (visited.has(point.session)) throw new StoreError('corrupt-part', `session ${session} is among its own ancestors`);
    visited.add(point.session);
    const fork = current;
    // A fork may begin before the point where its parent left its own parent.
    last = Math.min(last, point.seq);
    current = point.session;
    const head = await db.entity(sessionObjectId(current));
    if (head === undefined) {
      throw new StoreError('missing-part', `session ${fork} continues session ${current}, which the database does not hold`);
    }
    point = marksOf(head).parent;
  }
  const all = [{ session: current, first: 1, last }, ...segments];
  return { session, segments: all.filter((segment) => segment.first <= segment.last) };
}
