import type { LargeTextReading } from '../../filesystem/access/read-source.js';
import type { ObjectStore } from '../../store/object-store.js';
import { chunkListPart, chunkPart } from '../../store/texts.js';
import type { StoredDocument } from '../../xtdb/documents.js';
import type { TxOp } from '../../xtdb/transactions.js';

/** Chunks of one transaction: 4 MiB of UTF-16 units, far below the limit of a request's body. */
const CHUNKS_AT_ONCE = 8;

/**
 * Writes the chunks of a large text ahead of the version that names them, in transactions of bounded size, and gives the operation that lists
 * them (decision G5). Chunks are content-addressed: those of an attempt that failed later harm nothing and are found again. Nothing above 64 MiB.
 */
export async function writeLargeText(store: ObjectStore, { chunks, fileHash, length }: LargeTextReading): Promise<readonly TxOp[]> {
  if (chunks === undefined) return [];
  const ids: string[] = [];
  let batch: StoredDocument[] = [];
  const send = async (): Promise<void> => {
    const ops = store.textOps(batch);
    batch = [];
    if (ops.length === 0) return;
    await store.writes.write('large-text', async () => ({ ops, result: undefined }));
    store.markStored(ops);
  };
  for (const chunk of chunks()) {
    const part = chunkPart(chunk);
    ids.push(part['xt/id'].slice('chunk:'.length));
    batch.push(part);
    if (batch.length === CHUNKS_AT_ONCE) await send();
  }
  await send();
  return store.textOps([chunkListPart(fileHash, ids, length)]);
}
