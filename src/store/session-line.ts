import type { SessionId } from '../objects/ids.js';
import { isDamage } from './errors.js';
import type { AskedBasis, ObjectStore } from './object-store.js';
import type { StoreSnapshot } from './store-snapshot.js';

/**
 * Returns the objects as a session sees them, with the file versions of its import's line (decision
 * F10). Returns the same snapshot if the session has no such line.
 *
 * @throws {XtdbError}
 */
export async function ofSession(snapshot: StoreSnapshot, session: SessionId): Promise<StoreSnapshot> {
  if (snapshot.documents.names !== undefined) return snapshot;
  const lineage = await snapshot.lineage(session).catch((error: unknown) => {
    // Ignores damage here, because the code that reads the session's steps reports it.
    if (isDamage(error)) return undefined;
    throw error;
  });
  const ancestors = (lineage?.segments ?? []).map((segment) => segment.session).filter((one) => one !== session);
  const term = (await snapshot.sessionHead(session))?.marks.epoch ?? 0;
  const names = await snapshot.documents.lineNames(session, { ancestors: ancestors.reverse(), term });
  return names === undefined ? snapshot : snapshot.named(names);
}

/**
 * Returns the objects as of the end of an import, for an imported session that continues here.
 * Otherwise returns the snapshot unchanged.
 */
export function asImported(own: StoreSnapshot): StoreSnapshot {
  const { until } = own.documents.names ?? {};
  return (until === undefined ? undefined : own.earlier({ validTime: own.basis.validTime, txId: until })) ?? own;
}

/** Returns a store whose snapshots use the entity names of `snapshot`, for reading contexts. */
export function storeOf(
  store: ObjectStore,
  { documents: { names } }: StoreSnapshot,
): Pick<ObjectStore, 'latest' | 'asOf'> {
  if (names === undefined) return store;
  return {
    latest: async () => (await store.latest()).named(names),
    asOf: async (basis: AskedBasis) => (await store.asOf(basis)).named(names),
  };
}
