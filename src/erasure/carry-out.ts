import { openStore } from '../host/open-store.js';
import type { Settings } from '../host/settings.js';
import { dataFolderAt } from '../node/data-folder.js';
import { ensureNode } from '../node/ensure-node.js';
import { stopNodeOf } from '../node/stop-node.js';
import { orderSweep } from '../node/sweep-order.js';
import { TIME_LIMITS } from '../node/time-limits.js';
import type { Forgetter, Forgotten } from '../objects/forgotten.js';
import { sessionId } from '../objects/ids.js';
import { withNamedLock } from '../process/lock.js';
import { ALWAYS, type ObjectStore } from '../store/object-store.js';
import { readUnproved, toTombstone, toUnproved } from '../store/tombstones.js';
import type { TxOp } from '../xtdb/transactions.js';
import { finishOrder, type PendingOrder } from './order-file.js';

const OPS_AT_ONCE = 250;
/** The write lane of erasures. No session can have this name. */
const LANE = '.erasure';

async function write(store: ObjectStore, ops: readonly TxOp[]): Promise<void> {
  for (let first = 0; first < ops.length; first += OPS_AT_ONCE) {
    const some = ops.slice(first, first + OPS_AT_ONCE);
    await store.writes.write(LANE, async () => ({ ops: some, result: undefined }));
  }
}

/**
 * Evicts the documents of an order. Their tombstones come first, so that no reader takes them for
 * lost. All of it may run again.
 */
async function evict(store: ObjectStore, { order, evict: ids, buried, unproved, marked }: PendingOrder): Promise<void> {
  const { documents } = await store.latest();
  const known = await documents.newest(
    buried.map(({ id }) => toTombstone(id, { ...order, type: '', hashes: [] })['xt/id']),
  );
  const tombstones = buried
    .map(({ id, type, hashes }) => toTombstone(id, { ...order, type, hashes }))
    .filter((one) => !known.has(one['xt/id']));
  const lost: TxOp[] = [];
  for (const { session, from } of unproved) {
    const id = sessionId(session);
    const before = await readUnproved(documents, id);
    if (before.some((one) => one.order === order.order)) continue;
    lost.push({ op: 'put', doc: toUnproved(id, [...before, { ...order, from }]), validTime: ALWAYS });
  }
  await write(store, [...tombstones.map((doc) => ({ op: 'put', doc, validTime: ALWAYS }) as const), ...lost]);
  await write(
    store,
    ids.map((id) => ({ op: 'evict', id }) as const),
  );
  // A put in the transaction of its eviction is lost.
  await write(
    store,
    marked.map(({ document, validTime }) => ({ op: 'put', doc: document, validTime: new Date(validTime) }) as const),
  );
}

/** Restarts the node, which rewrites its files before it opens them. */
export async function sweep({ node }: Settings, onProgress: (message: string) => void): Promise<void> {
  await orderSweep(node.dataDir);
  const folder = dataFolderAt(node.dataDir);
  await withNamedLock(folder.startLock, { limitMs: TIME_LIMITS.lockMs }, async () => {
    await stopNodeOf(folder);
  });
  // A large database takes long to rewrite.
  const swept = await ensureNode({ ...node, readyTimeoutMs: TIME_LIMITS.lockMs, onProgress });
  await swept.release();
}

/** The input of carrying out an order. */
export interface CarryOutOptions {
  readonly settings: Settings;
  readonly forgetters: readonly Forgetter[];
  readonly onProgress: (message: string) => void;
}

/** Returns what an order erases, for those who keep copies. */
export const forgottenBy = ({
  sessions,
  evict: ids,
  texts,
}: Pick<PendingOrder, 'sessions' | 'evict' | 'texts'>): Forgotten => ({
  sessions: new Set(sessions),
  documents: new Set(ids),
  texts,
});

/**
 * Carries out a recorded order: evicts its documents, erases copies, and makes the node rewrite its
 * files. Every part may run again, so an order that was killed anywhere is carried out from its
 * beginning.
 */
export async function carryOut(pending: PendingOrder, options: CarryOutOptions): Promise<void> {
  const { settings, forgetters, onProgress } = options;
  onProgress(`Erasing ${pending.evict.length} documents …`);
  const { store, close } = await openStore(settings, onProgress);
  try {
    await evict(store, pending);
  } finally {
    await close();
  }
  for (const forgetter of forgetters) {
    onProgress(`Erasing ${forgetter.keeps} …`);
    await forgetter.forget(settings.node.dataDir, forgottenBy(pending));
  }
  onProgress('The node rewrites its files …');
  await sweep(settings, onProgress);
  await finishOrder(settings.node.dataDir);
}
