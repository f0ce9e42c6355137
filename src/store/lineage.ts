import { type SessionId, sessionObjectId } from '../objects/ids.js';
import type { DbSnapshot } from '../xtdb/db-snapshot.js';
import { StoreError } from './errors.js';
import { type ForkPoint, marksOf } from './head.js';

/** Steps of one session that belong to a fork's history: from `first` to `last`, both included. */
export interface LineageSegment {
  readonly session: SessionId;
  readonly first: number;
  /** `Infinity` for the session itself, which still grows. */
  readonly last: number;
}

/**
 * The owners of a session's steps (decision F2): segments of its ancestors, oldest first, then its
 * own.
 */
export interface Lineage {
  readonly session: SessionId;
  readonly segments: readonly LineageSegment[];
}

/** A range of steps, both ends included. Absent ends mean all steps. */
export interface StepRange {
  readonly first?: number;
  readonly last?: number;
}

/** Returns the session that wrote a step of a lineage. Undefined if no segment holds the step. */
export function ownerOf({ segments }: Lineage, seq: number): SessionId | undefined {
  return segments.find(({ first, last }) => first <= seq && seq <= last)?.session;
}

/**
 * Returns the fork point in a session's head. Undefined if the session is not a fork or the
 * database does not hold it.
 */
export async function forkPointOf(db: DbSnapshot, session: SessionId): Promise<ForkPoint | undefined> {
  const head = await db.entity(sessionObjectId(session));
  return head === undefined ? undefined : marksOf(head).parent;
}

/**
 * Returns the lineage of a session without a parent, or of a session that the database does not
 * hold.
 */
export function withoutParent(session: SessionId): Lineage {
  return { session, segments: [{ session, first: 1, last: Number.POSITIVE_INFINITY }] };
}

/**
 * Returns the lineage of a session from the fork point in its head. It is the same at every basis
 * that holds the session. A fork's parent may be a fork itself, so this makes one look-up per
 * ancestor.
 *
 * @throws {StoreError} `missing-part` if an ancestor is absent; `corrupt-part` if a session is its
 *   own ancestor
 */
export async function lineageFrom(db: DbSnapshot, session: SessionId, parent: ForkPoint | undefined): Promise<Lineage> {
  const segments: LineageSegment[] = [];
  const visited = new Set<SessionId>([session]);
  let [current, point, last]: [SessionId, ForkPoint | undefined, number] = [session, parent, Number.POSITIVE_INFINITY];
  while (point !== undefined) {
    segments.unshift({ session: current, first: point.seq + 1, last });
    if (visited.has(point.session)) throw new StoreError('corrupt-part', `session ${session} is its own ancestor`);
    visited.add(point.session);
    const fork = current;
    // A fork may begin before the point at which its parent left its own parent.
    last = Math.min(last, point.seq);
    current = point.session;
    const head = await db.entity(sessionObjectId(current));
    if (head === undefined) {
      throw new StoreError(
        'missing-part',
        `session ${fork} continues session ${current}, which the database does not hold`,
      );
    }
    point = marksOf(head).parent;
  }
  const all = [{ session: current, first: 1, last }, ...segments];
  return { session, segments: all.filter((segment) => segment.first <= segment.last) };
}
