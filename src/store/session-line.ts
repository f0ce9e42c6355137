import type { SessionId } from '../objects/ids.js';
import { isDamage } from './errors.js';
import type { AskedBasis, ObjectStore } from './object-store.js';
import type { StoreSnapshot } from './store-snapshot.js';

/**
 * The objects as a session finds them: with the versions of files that an import keeps to it (decision F10). The same snapshot for every other session.
 * @throws {XtdbError}
 */
export async function ofSession(snapshot: StoreSnapshot, session: SessionId): Promise<StoreSnapshot> {
  if (snapshot.documents.names !== undefined) return snapshot;
  const lineage = await snapshot.lineage(session).catch((error: unknown) => {
    // Whoever reads its steps says what is damaged.
    if (isDamage(error)) return undefined;
    throw error;
  });
  const ancestors = (lineage?.segments ?? []).map((segment) => segment.session).filter((one) => one !== session);
  const epoch = (await snapshot.sessionHead(session))?.marks.epoch ?? 0;
  const names = await snapshot.documents.lineNames(session, { ancestors: ancestors.reverse(), epoch });
  return names === undefined ? snapshot : snapshot.named(names);
}

/** The objects as they stood when the import of a session ended that goes on here; else as they are. */
export function asImported(own: StoreSnapshot): StoreSnapshot {
  const { until } = own.documents.names ?? {};
  return (until === undefined ? undefined : own.earlier({ validTime: own.basis.validTime, txId: until })) ?? own;
}

/** The parts of a store that contexts are read from, as a snapshot of it finds objects. */
export function storeOf(store: ObjectStore, { documents: { names } }: StoreSnapshot): Pick<ObjectStore, 'latest' | 'asOf'> {
  if (names === undefined) return store;
  return {
    latest: async () => (await store.latest()).named(names),
    asOf: async (basis: AskedBasis) => (await store.asOf(basis)).named(names),
  };
}
