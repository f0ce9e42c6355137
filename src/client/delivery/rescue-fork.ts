import { type SessionId, sessionId, sessionObjectId } from '../../objects/ids.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { SessionWrite } from './session-write.js';

/** A fork that keeps what a session's former writer had acknowledged. */
export interface RescuePlace {
  readonly fork: SessionId;
  /** The first step that it does not share with the session. */
  readonly first: number;
}

/** What names the fork of a write. */
type Refused = Pick<SessionWrite, 'session' | 'lease'>;

/** The epoch of the lease that a write was made under (decision F5). */
export const epochOf = (lease: StoredDocument | null | undefined): number => Number(lease?.epoch ?? 1);

/** The id of the fork that begins with a step: it shows the session and the epoch that it was cut from. */
const forkName = (session: SessionId, epoch: number, first: number): string => `${session.slice(0, 150)}.fork-${epoch}-${first}`;

/** Whether an id is the name of a fork, or what stands for it where others had taken that. */
const isNamed = (id: SessionId, name: string): boolean => id.startsWith(name) && /^(?:-\d+)?$/.test(id.slice(name.length));

/** The fork that an earlier process has put the steps of a session into, up to the given step where there is one: the one that was begun last. */
export async function earlierFork(
  snapshot: StoreSnapshot,
  refused: Refused,
  seq = Number.POSITIVE_INFINITY,
): Promise<RescuePlace | undefined> {
  const forks = (await snapshot.sessions()).flatMap(({ id, parent }): readonly RescuePlace[] => {
    if (parent?.session !== refused.session || parent.seq >= seq) return [];
    const first = parent.seq + 1;
    return isNamed(id, forkName(refused.session, epochOf(refused.lease), first)) ? [{ fork: id, first }] : [];
  });
  return forks.toSorted((a, b) => b.first - a.first)[0];
}

/** The id of a fork that is to begin with a step: its name, or with a number behind it where others have a session of that name. */
export async function freeFork(snapshot: StoreSnapshot, refused: Refused, first: number): Promise<SessionId> {
  const name = forkName(refused.session, epochOf(refused.lease), first);
  for (let n = 1; ; n++) {
    const id = sessionId(n === 1 ? name : `${name}-${n}`);
    const key = sessionObjectId(id);
    if (!(await snapshot.heads([key])).has(key)) return id;
  }
}

/** Acknowledged steps that only a fork has: another writer went on with their session before they were delivered (decision F6). */
export interface StepsInFork extends RescuePlace {
  readonly session: SessionId;
  readonly last: number;
}

/** All acknowledged steps of a database that only a fork has, by fork. */
export async function stepsInForks(snapshot: StoreSnapshot): Promise<readonly StepsInFork[]> {
  const forks = (await snapshot.sessions()).flatMap(({ id, parent }) => {
    if (parent === undefined) return [];
    const [name, epoch] = /\.fork-(\d+)-\d+(?:-\d+)?$/.exec(id) ?? [];
    const first = parent.seq + 1;
    const isRescue = name !== undefined && isNamed(id, forkName(parent.session, Number(epoch), first));
    return isRescue ? [{ session: parent.session, fork: id, first }] : [];
  });
  return Promise.all(forks.map(async (one) => ({ ...one, last: (await snapshot.steps(one.fork)).length })));
}

/** In words: which steps are in which fork only. */
export const stepsInForkText = ({ session, fork, first, last }: StepsInFork): string =>
  `steps ${first} to ${last} that an earlier writer of session ${session} acknowledged are in session ${fork} only`;
