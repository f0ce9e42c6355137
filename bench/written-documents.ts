import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { EdnMap, type EdnValue, elements, Keyword } from '../src/edn/values.js';
import type { NodeAddress } from '../src/xtdb/address.js';
import { type StoredDocument, toDocument } from '../src/xtdb/documents.js';
import { XtdbHttp } from '../src/xtdb/http.js';
import { encodeTransaction, readReceipt, type TxOp } from '../src/xtdb/transactions.js';
import { XtdbClient, type XtdbClientOptions } from '../src/xtdb/xtdb-client.js';
import { type Answer, callOf } from './stdio-server.js';

/** The documents of one transaction of the log. */
export interface WrittenTransaction {
  readonly txId: number;
  readonly puts: readonly Extract<TxOp, { op: 'put' }>[];
  /** Bytes of these puts as they are sent. */
  readonly bytes: number;
}

/** A client that also reads the transaction log. */
export class LogClient extends XtdbClient {
  readonly #log: XtdbHttp;

  constructor(address: NodeAddress | (() => Promise<NodeAddress>), options: XtdbClientOptions = {}) {
    super(address, options);
    this.#log = new XtdbHttp(address, { connections: 1, maxRequestBytes: 1024, maxAnswerBytes: 1024 ** 3 });
  }

  /**
   * Returns the id of the latest submitted transaction, even if it is not indexed yet. Undefined on
   * an empty node.
   */
  async latestSubmittedTx(): Promise<number | undefined> {
    const answer = await this.#log.send({
      method: 'GET',
      path: '/latest-submitted-tx',
      accept: 'application/edn',
      timeoutMs: 60_000,
    });
    const txId = answer instanceof EdnMap ? answer.get('xtdb.api/tx-id') : undefined;
    return typeof txId === 'number' ? txId : undefined;
  }

  /** Returns the indexed transactions after one, with their operations. */
  async entriesAfter(txId: number | undefined): Promise<readonly EdnValue[]> {
    const submitted = await this.latestSubmittedTx();
    if (submitted !== undefined) await this.awaitOutcome(submitted);
    const params = { 'after-tx-id': txId, 'with-ops?': true };
    return (
      elements(
        await this.#log.send({
          method: 'GET',
          path: '/tx-log',
          params,
          accept: 'application/transit+json',
          timeoutMs: 60_000,
        }),
      ) ?? []
    );
  }

  override async close(): Promise<void> {
    await Promise.all([super.close(), this.#log.close()]);
  }
}

function asPut(operation: EdnValue): readonly Extract<TxOp, { op: 'put' }>[] {
  const [op, document, validTime] = elements(operation) ?? [];
  if (!(op instanceof Keyword) || op.name !== 'xtdb.api/put' || !(document instanceof EdnMap)) return [];
  return [{ op: 'put', doc: toDocument(document), ...(validTime instanceof Date ? { validTime } : {}) }];
}

/** Returns the documents of the transactions after one, in order. */
export async function writtenAfter(
  xtdb: LogClient,
  afterTxId: number | undefined,
): Promise<readonly WrittenTransaction[]> {
  return (await xtdb.entriesAfter(afterTxId)).map((entry) => {
    const puts = (entry instanceof EdnMap ? (elements(entry.get('xtdb.api/tx-ops')) ?? []) : []).flatMap(asPut);
    return {
      txId: readReceipt(entry).txId,
      puts,
      bytes: puts.length === 0 ? 0 : Buffer.byteLength(encodeTransaction(puts)),
    };
  });
}

/** Resolves once the node has indexed a call. The call may have been acknowledged earlier. */
export async function untilStored(xtdb: XtdbClient, call: string | undefined): Promise<void> {
  const limit = performance.now() + 30_000;
  // Another process writes the call, so this process must poll.
  while (call !== undefined && (await (await xtdb.db()).entity(call)) === undefined) {
    if (performance.now() > limit) throw new Error(`the node has not indexed ${call} after 30 s`);
    await delay(1);
  }
}

/** Returns the documents of the transaction of one call. */
export async function captureWrite(xtdb: LogClient, work: () => Promise<Answer>): Promise<WrittenTransaction> {
  const before = await xtdb.latestSubmittedTx();
  const call = callOf(await work());
  await untilStored(xtdb, call);
  const written = (await writtenAfter(xtdb, before)).find(({ puts }) => puts.some(({ doc }) => doc['xt/id'] === call));
  if (written === undefined) throw new Error(`no transaction after ${before} holds the call ${call}`);
  return written;
}

const DIGEST = /[0-9a-f]{64}/g;

/**
 * Copies puts with ids and hashes that the database does not have. Replaces every digest and each
 * of the `marks`, such as a session id or a file name. Every replacement has the same length.
 */
export function freshCopy({ puts }: WrittenTransaction, marks: readonly string[], salt: string): readonly TxOp[] {
  return puts.map((put) => {
    let text = JSON.stringify(put.doc).replace(DIGEST, (digest) =>
      createHash('sha256').update(salt).update(digest).digest('hex'),
    );
    for (const mark of marks) text = text.replaceAll(mark, salt.padEnd(mark.length, '_'));
    return { ...put, doc: JSON.parse(text) as StoredDocument };
  });
}
