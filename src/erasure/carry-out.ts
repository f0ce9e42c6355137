import { type OpenStore, openStore } from '../host/open-store.js';
import type { Settings } from '../host/settings.js';
import { dataFolderAt } from '../node/data-folder.js';
import { ensureNode } from '../node/ensure-node.js';
import { orderSweep } from '../node/erasure-sign.js';
import { stopNodeOf } from '../node/stop-node.js';
import { TIME_LIMITS } from '../node/time-limits.js';
import type { Forgetter, Forgotten } from '../objects/forgotten.js';
import { sessionId } from '../objects/ids.js';
import { withNamedLock } from '../process/lock.js';
import { ALWAYS, type ObjectStore } from '../store/object-store.js';
import { readUnproved, toTombstone, toUnproved } from '../store/tombstones.js';
import type { StoredDocument } from '../xtdb/documents.js';
import type { TxOp } from '../xtdb/transactions.js';
import type { TransactionLog } from '../xtdb/tx-log.js';
import { digestsIn, partsOf } from './named-digests.js';
import { finishOrder, type PendingOrder } from './order-file.js';

const OPS_AT_ONCE = 250;
/** The write path's lane for erasures. No session can have this name. */
const LANE = '.erasure';

async function write(store: ObjectStore, ops: readonly TxOp[]): Promise<void> {
  for (let first = 0; first < ops.length; first += OPS_AT_ONCE) {
    const some = ops.slice(first, first + OPS_AT_ONCE);
    await store.writes.write(LANE, async () => ({ ops: some, result: undefined }));
  }
}

const READ_AT_ONCE = 16 * 1_048_576;
const TRACES: ReadonlySet<unknown> = new Set(['erased', 'unproved']);

/** The text of a chunk is content, so a digest in it names no document. */
const namedBy = (document: StoredDocument): readonly string[] =>
  document.type === 'chunk' ? [] : digestsIn(JSON.stringify(document));

/**
 * Returns the documents of an order that remaining documents have named since its plan, such as a
 * file that another agent has read. They are not evicted. This also protects them if an order is
 * resumed long after a kill.
 */
async function neededAgain(
  { log, store }: { readonly log: TransactionLog; readonly store: ObjectStore },
  { txId: planned, evict, marked }: PendingOrder,
): Promise<ReadonlySet<string>> {
  const needed = new Set<string>();
  if (planned === undefined) return needed;
  const back = new Set(marked.map(({ document }) => document['xt/id']));
  const going = new Set(evict.filter((id) => !back.has(id)));
  const named = new Set<string>();
  for (let txId = planned; ; ) {
    const transactions = await log.documentsAfter(txId, { maxBytes: READ_AT_ONCE });
    if (transactions.length === 0) break;
    for (const { txId: at, puts } of transactions) {
      txId = at;
      for (const { document } of puts) {
        const id = document['xt/id'];
        if (TRACES.has(document.type) || going.has(id) || back.has(id)) continue;
        for (const digest of namedBy(document)) named.add(digest);
      }
    }
  }
  const { documents } = await store.latest();
  for (let waiting = [...named]; waiting.length > 0; ) {
    const ids = waiting
      .flatMap((digest) => [digest, ...partsOf(digest)])
      .filter((id) => going.has(id) && !needed.has(id));
    for (const id of ids) needed.add(id);
    const found = ids.length === 0 ? [] : [...(await documents.newest(ids)).values()];
    waiting = found.flatMap(namedBy);
  }
  return needed;
}

/**
 * Evicts the documents of an order. Writes their tombstones first, so that readers do not report
 * the missing documents as damage. May be repeated.
 */
async function evict({ store, log }: OpenStore, pending: PendingOrder): Promise<void> {
  const { order, unproved, marked } = pending;
  const needed = await neededAgain({ store, log }, pending);
  const ids = pending.evict.filter((id) => !needed.has(id));
  const buried = pending.buried.filter(({ id }) => !needed.has(id));
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
  // Uses a separate transaction, because the node loses a put in the transaction that evicts the
  // same document.
  await write(
    store,
    marked.map(({ document, validTime }) => ({ op: 'put', doc: document, validTime: new Date(validTime) }) as const),
  );
}

/** Restarts the node so that it rewrites the files of its database before it opens them. */
export async function sweep({ node }: Settings, onProgress: (message: string) => void): Promise<void> {
  await orderSweep(node.dataDir);
  const folder = dataFolderAt(node.dataDir);
  await withNamedLock(folder.startLock, { limitMs: TIME_LIMITS.lockMs }, async () => {
    await stopNodeOf(folder);
  });
  // Rewriting a large database takes long.
  const swept = await ensureNode({ ...node, readyTimeoutMs: TIME_LIMITS.lockMs, onProgress });
  await swept.release();
}

/** Options for carrying out an order. */
export interface CarryOutOptions {
  readonly settings: Settings;
  readonly forgetters: readonly Forgetter[];
  readonly onProgress: (message: string) => void;
}

/** Returns the sessions, documents and texts of an order that each `Forgetter` must erase. */
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
 * files. Every part may be repeated, so an interrupted order is carried out again from its
 * beginning.
 */
export async function carryOut(pending: PendingOrder, options: CarryOutOptions): Promise<void> {
  const { settings, forgetters, onProgress } = options;
  onProgress(`Erasing ${pending.evict.length} documents …`);
  const open = await openStore(settings, onProgress);
  try {
    await evict(open, pending);
  } finally {
    await open.close();
  }
  for (const forgetter of forgetters) {
    onProgress(`Erasing ${forgetter.keeps} …`);
    await forgetter.forget(settings.node.dataDir, forgottenBy(pending));
  }
  onProgress('The node is rewriting its files …');
  await sweep(settings, onProgress);
  await finishOrder(settings.node.dataDir);
}
