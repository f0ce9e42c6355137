import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { type SessionId, sessionObjectId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import { assemblyId, toAssemblyPart } from '../../store/assemblies.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { Plan } from '../../store/write-path.js';
import type { Rescue } from './rescue-into-fork.js';
import { rescueId } from './rescue-write.js';
import type { SessionWrite, WriteResult } from './session-write.js';

const NOTHING: WriteResult = { outcomes: new Map(), written: [], files: [], met: [], metAt: undefined, ops: [] };

/**
 * Whether a write needs no other one before it: the record of a context that was read from the database, whose basis holds every step that it includes,
 * whoever has the session by now.
 */
export function standsAlone({ assembly }: SessionWrite): boolean {
  return assembly !== undefined && assembly.basis !== null && assembly.ahead === undefined;
}

/** The lane of a write: that of its session, whose turns wait for it; a lane beside it for what nothing waits for. No session can have its name. */
export function laneOf(write: SessionWrite): string {
  return standsAlone(write) ? `.assemblies:${write.session}` : write.session;
}

async function isKept(snapshot: StoreSnapshot, proof: AssemblyProof): Promise<boolean> {
  const { session, step } = proof;
  const id = assemblyId(proof);
  return (await snapshot.assemblies(session, { first: step, last: step })).some((kept) => assemblyId(kept) === id);
}

/** What was assembled without the database is true of the session only as long as nobody else wrote to it. */
async function requireLease(snapshot: StoreSnapshot, { session, lease }: SessionWrite): Promise<void> {
  const id = sessionObjectId(session);
  const head = (await snapshot.heads([id])).get(id)?.document ?? null;
  if (canonicalJson(head) === canonicalJson(lease ?? null)) return;
  throw new SessionError('taken-over', `session ${session} was continued by another writer; open it again to go on from where it stands`);
}

/**
 * The plan of the transaction that keeps the record of a context (decision E7): put if it is not there. One without a basis is guarded by the session's
 * lease like the steps that it was made of. `seen` says that an earlier process may have written it.
 */
export function planAssembly(store: ObjectStore, write: SessionWrite, seen: boolean): Plan<WriteResult> {
  const { assembly: proof, lease = null } = write;
  if (proof === undefined) throw new Error('BUG: no assembly to keep');
  const doc = toAssemblyPart(proof);
  const guards = standsAlone(write) ? [] : [store.guardOp(sessionObjectId(write.session), lease)];
  const put = { op: 'put', doc, validTime: new Date(proof.at) } as const;
  return async (attempt) => {
    if (seen || attempt > 1) {
      const snapshot = await store.latest();
      if (await isKept(snapshot, proof)) return { ops: [], result: NOTHING };
      if (guards.length > 0) await requireLease(snapshot, write);
    }
    store.noteTime(proof.at);
    return { ops: [...guards, store.guardOp(doc['xt/id'], null), put], result: NOTHING };
  };
}

interface Place {
  readonly fork: SessionId;
  readonly first: number;
}

/** The fork that an earlier process put the steps of a write's session into. */
async function earlierRescue(store: ObjectStore, { session, lease }: SessionWrite): Promise<Place | undefined> {
  const name = rescueId(session, 0, Number(lease?.epoch ?? 1)).slice(0, -1);
  const forks = (await (await store.latest()).sessions()).filter(({ id, parent }) => parent?.session === session && id.startsWith(name));
  const [latest] = forks.toSorted((a, b) => (b.parent?.seq ?? 0) - (a.parent?.seq ?? 0));
  return latest?.parent === undefined ? undefined : { fork: latest.id, first: latest.parent.seq + 1 };
}

/**
 * Keeps the record of a context that was assembled without the database, of a session that another writer took over: with the steps that were put into
 * a fork where it includes one of them, else with the session, which then has all of them (decision F6).
 */
export async function rescueAssembly(store: ObjectStore, write: SessionWrite, rescue: Rescue | undefined): Promise<void> {
  const { assembly: proof } = write;
  if (proof === undefined) throw new Error('BUG: no assembly to keep');
  const place = rescue ?? (await earlierRescue(store, write));
  const moved = place !== undefined && proof.step >= place.first;
  const kept: AssemblyProof = moved ? { ...proof, session: place.fork, rescuedFrom: proof.session } : proof;
  const doc = toAssemblyPart(kept);
  const put = { op: 'put', doc, validTime: new Date(kept.at) } as const;
  await store.writes.write(
    kept.session,
    async (attempt) => {
      const there = attempt > 1 && (await isKept(await store.latest(), kept));
      return { ops: there ? [] : [store.guardOp(doc['xt/id'], null), put], result: undefined };
    },
    { persistent: true },
  );
}
