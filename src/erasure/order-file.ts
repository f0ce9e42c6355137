import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import * as z from 'zod';
import { ERASURES, PENDING_ORDER } from '../node/erasure-sign.js';
import { parseJson, replaceFile, textOf } from '../process/owned-file.js';
import type { StoredDocument } from '../xtdb/documents.js';
import { ErasureError } from './erasure-error.js';

const hashes = z.array(z.record(z.string(), z.string()));

const orderSchema = z.strictObject({
  version: z.literal(1),
  order: z.strictObject({ order: z.string(), at: z.int(), by: z.string(), reason: z.string() }),
  /** The last transaction that the plan covers. Orders of earlier versions lack it. */
  txId: z.int().optional(),
  /** A description of the selection, without the selected text. */
  what: z.string(),
  evict: z.array(z.string()),
  buried: z.array(z.strictObject({ id: z.string(), type: z.string(), hashes })),
  sessions: z.array(z.string()),
  unproved: z.array(z.strictObject({ session: z.string(), from: z.int() })),
  /**
   * Documents to store after the eviction, with marks in place of erased texts. Each has the
   * beginning of its valid time.
   */
  marked: z.array(
    z.strictObject({ document: z.custom<StoredDocument>((one) => typeof one === 'object'), validTime: z.int() }),
  ),
  /** The texts to find in copies. The order file contains them only until the order is finished. */
  texts: z.array(z.string()),
});

/** A recorded order that is not finished. */
export type PendingOrder = Readonly<z.output<typeof orderSchema>>;

/** Returns the folder for plans and orders in a data folder. */
export const erasuresFolder = (dataDir: string): string => join(dataDir, ERASURES);

const pendingFile = (dataDir: string): string => join(dataDir, PENDING_ORDER);

/**
 * Returns the unfinished order of a data folder. Undefined if there is none.
 * @throws {ErasureError} `unfinished` if its file is damaged
 */
export async function pendingOrder(dataDir: string): Promise<PendingOrder | undefined> {
  const text = await textOf(pendingFile(dataDir));
  if (text === undefined) return undefined;
  const order = parseJson(text, orderSchema);
  if (order !== undefined) return order;
  throw new ErasureError(
    'unfinished',
    `${pendingFile(dataDir)} holds an erasure order that cannot be read: remove the file, then give the order again`,
  );
}

/** Records an order before anything is erased. If this process is killed, another finishes it. */
export async function recordOrder(dataDir: string, order: PendingOrder): Promise<void> {
  await mkdir(erasuresFolder(dataDir), { recursive: true, mode: 0o700 });
  await replaceFile(pendingFile(dataDir), `${JSON.stringify(order)}\n`, { flush: true });
}

/** Removes a finished order. */
export const finishOrder = (dataDir: string): Promise<void> => rm(pendingFile(dataDir), { force: true });
