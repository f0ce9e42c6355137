import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { EdnMap } from '../src/edn/values.js';
import { type StoredDocument, toDocument } from '../src/xtdb/documents.js';
import { encodeTransaction, type TxLogEntry, type TxOp } from '../src/xtdb/transactions.js';
import type { XtdbClient } from '../src/xtdb/xtdb-client.js';
import { type Answer, callOf } from './stdio-server.js';

/** One transaction of the log: what it put. */
export interface WrittenTransaction {
  readonly txId: number;
  readonly puts: readonly Extract<TxOp, { op: 'put' }>[];
  /** Bytes of the same puts as they travel to the node. */
  readonly bytes: number;
}

function asPut({ op, args: [document, validTime] }: NonNullable<TxLogEntry['ops']>[number]): readonly Extract<TxOp, { op: 'put' }>[] {
  if (op !== 'put' || !(document instanceof EdnMap)) return [];
  return [{ op, doc: toDocument(document), ...(validTime instanceof Date ? { validTime } : {}) }];
}

/** What the transactions after one put, in order. */
export async function writtenAfter(xtdb: XtdbClient, afterTxId: number | undefined): Promise<readonly WrittenTransaction[]> {
  const entries = await xtdb.txLog({ withOps: true, ...(afterTxId === undefined ? {} : { afterTxId }), timeoutMs: 60_000 });
  return entries.map(({ txId, ops }) => {
    const puts = (ops ?? []).flatMap(asPut);
    return { txId, puts, bytes: puts.length === 0 ? 0 : Buffer.byteLength(encodeTransaction(puts)) };
  });
}

/** Resolves when the node has indexed a call, which may have been acknowledged before. */
export async function untilStored(xtdb: XtdbClient, call: string | undefined): Promise<void> {
  const limit = performance.now() + 30_000;
  // Another process writes it: there is nothing to be woken by.
  while (call !== undefined && (await (await xtdb.db()).entity(call)) === undefined) {
    if (performance.now() > limit) throw new Error(`the node has not indexed ${call} after 30 s`);
    await delay(1);
  }
}

/** What the transaction of one call puts. */
export async function captureWrite(xtdb: XtdbClient, work: () => Promise<Answer>): Promise<WrittenTransaction> {
  const before = await xtdb.latestSubmittedTx();
  const call = callOf(await work());
  await untilStored(xtdb, call);
  const written = (await writtenAfter(xtdb, before)).find(({ puts }) => puts.some(({ doc }) => doc['xt/id'] === call));
  if (written === undefined) throw new Error(`no transaction after ${before} holds the call ${call}`);
  return written;
}

const DIGEST = /[0-9a-f]{64}/g;

/**
 * The same puts under ids and hashes that the database has not seen: every digest and every one of the `marks` (a session's id, the name of a file that
 * stands in its text too) is exchanged for another, everything else stays as long as it was.
 */
export function freshCopy({ puts }: WrittenTransaction, marks: readonly string[], salt: string): readonly TxOp[] {
  return puts.map((put) => {
    let text = JSON.stringify(put.doc).replace(DIGEST, (digest) => createHash('sha256').update(salt).update(digest).digest('hex'));
    for (const mark of marks) text = text.replaceAll(mark, salt.padEnd(mark.length, '_'));
    return { ...put, doc: JSON.parse(text) as StoredDocument };
  });
}
