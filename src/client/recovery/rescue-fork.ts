import { type SessionId, sessionId, sessionObjectId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { SessionWrite } from '../delivery/session-write.js';

/** A fork that keeps the acknowledged steps of a session's former writer. */
export interface RescuePlace {
  readonly fork: SessionId;
  /** The first step that the fork does not share with the session. */
  readonly first: number;
}

/** The parts of a write that name its fork. */
type Refused = Pick<SessionWrite, 'session' | 'lease'>;

/** Returns the term of a write's lease (decision F5). */
export const termOf = (lease: StoredDocument | null | undefined): number => Number(lease?.epoch ?? 1);

/** Returns the id of a fork that begins with step `first`. It shows the session and the term. */
const forkName = (session: SessionId, term: number, first: number): string =>
  `${session.slice(0, 150)}.fork-${term}-${first}`;

/** Returns whether an id is a fork's name, with or without a numeric suffix. */
const isNamed = (id: SessionId, name: string): boolean =>
  id.startsWith(name) && /^(?:-\d+)?$/.test(id.slice(name.length));

/**
 * Returns the newest fork that an earlier process created for a session's steps. With `seq`, the
 * fork must begin at or before that step.
 */
export async function earlierFork(
  snapshot: StoreSnapshot,
  refused: Refused,
  seq = Number.POSITIVE_INFINITY,
): Promise<RescuePlace | undefined> {
  const forks = (await snapshot.forks()).flatMap(({ id, parent }): readonly RescuePlace[] => {
    if (parent.session !== refused.session || parent.seq >= seq) return [];
    const first = parent.seq + 1;
    return isNamed(id, forkName(refused.session, termOf(refused.lease), first)) ? [{ fork: id, first }] : [];
  });
  return forks.toSorted((a, b) => b.first - a.first)[0];
}

/** Returns a free id for a fork. A number is appended if the name is taken. */
export async function freeFork(snapshot: StoreSnapshot, refused: Refused, first: number): Promise<SessionId> {
  const name = forkName(refused.session, termOf(refused.lease), first);
  for (let n = 1; ; n++) {
    const id = sessionId(n === 1 ? name : `${name}-${n}`);
    const key = sessionObjectId(id);
    if (!(await snapshot.heads([key])).has(key)) return id;
  }
}

/**
 * Acknowledged steps that only a fork has, because another writer continued the session before
 * their delivery (decision F6).
 */
export interface StepsInFork extends RescuePlace {
  readonly session: SessionId;
  readonly last: number;
}

/** Returns all acknowledged steps of a database that only a fork has, by fork. */
export async function stepsInForks(snapshot: StoreSnapshot): Promise<readonly StepsInFork[]> {
  const forks = (await snapshot.forks()).flatMap(({ id, parent }) => {
    const [name, term] = /\.fork-(\d+)-\d+(?:-\d+)?$/.exec(id) ?? [];
    const first = parent.seq + 1;
    const isRescue = name !== undefined && isNamed(id, forkName(parent.session, Number(term), first));
    return isRescue ? [{ session: parent.session, fork: id, first }] : [];
  });
  return Promise.all(forks.map(async (one) => ({ ...one, last: (await snapshot.steps(one.fork)).length })));
}

/** Describes the steps that only a fork has. */
export const stepsInForkText = ({ session, fork, first, last }: StepsInFork): string =>
  `steps ${first} to ${last} that an earlier writer of session ${session} acknowledged are in session ${fork} only`;
