import type { AssemblyProof } from '../../objects/assembly-proof.js';
import { canonicalJson } from '../../objects/canonical-json.js';
import { sessionObjectId } from '../../objects/ids.js';
import { SessionError } from '../../session/errors.js';
import { assemblyId, toAssemblyPart } from '../../store/assemblies.js';
import type { ObjectStore } from '../../store/object-store.js';
import type { StoreSnapshot } from '../../store/store-snapshot.js';
import type { Plan } from '../../store/write-path.js';
import type { TxOp } from '../../xtdb/transactions.js';
import { NOTHING_WRITTEN, type SessionWrite, type WriteResult } from './session-write.js';

/**
 * Whether a write needs no other one before it: the record of a context that was read from the database, whose basis holds every step that it includes,
 * whoever has the session by now.
 */
export function standsAlone({ assembly }: SessionWrite): boolean {
  return assembly !== undefined && assembly.basis !== null && assembly.ahead === undefined;
}

/** The lane of a write: that of its session, whose turns wait for it, or one of its own for what nothing waits for. No session can have its name. */
export function laneOf(write: SessionWrite): string {
  return standsAlone(write) ? `.assemblies:${write.session}` : write.session;
}

/** Whether the database has the record of a context. */
export async function isAssemblyStored(snapshot: StoreSnapshot, proof: AssemblyProof): Promise<boolean> {
  const { session, step } = proof;
  const id = assemblyId(proof);
  return (await snapshot.assemblies(session, { first: step, last: step })).some((stored) => assemblyId(stored) === id);
}

/** The operations that put the record of a context where none is. */
export function assemblyOps(store: ObjectStore, proof: AssemblyProof): readonly TxOp[] {
  const doc = toAssemblyPart(proof);
  return [store.guardOp(doc['xt/id'], null), { op: 'put', doc, validTime: new Date(proof.at) }];
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
  const guards = standsAlone(write) ? [] : [store.guardOp(sessionObjectId(write.session), lease)];
  const ops = [...guards, ...assemblyOps(store, proof)];
  return async (attempt) => {
    if (seen || attempt > 1) {
      const snapshot = await store.latest();
      if (await isAssemblyStored(snapshot, proof)) return { ops: [], result: NOTHING_WRITTEN };
      if (guards.length > 0) await requireLease(snapshot, write);
    }
    store.noteTime(proof.at);
    return { ops, result: NOTHING_WRITTEN };
  };
}
