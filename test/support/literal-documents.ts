import { print } from '../../src/edn/print.js';
import { EdnMap, EdnSet, type EdnValue, kw, kwMap, sym } from '../../src/edn/values.js';
import type { ObjectVersion } from '../../src/objects/seal.js';
import type { StoreSnapshot } from '../../src/store/store-snapshot.js';
import type { NodeAddress } from '../../src/xtdb/address.js';
import { type DatalogQuery, triple } from '../../src/xtdb/datalog.js';
import { nestedValue } from '../../src/xtdb/documents.js';
import { XtdbHttp } from '../../src/xtdb/http.js';
import { readReceipt } from '../../src/xtdb/transactions.js';
import { openTestClient } from './xtdb.js';

/**
 * Years before any session. Only a query at such a time sees documents valid in that year alone.
 */
const yearStart = (year: number): Date => new Date(Date.UTC(year, 0, 1));

/** Returns a moment at which the documents of a year are valid. */
export const inYear = (year: number): Date => new Date(Date.UTC(year, 5, 1));

const e = sym('?e');
const idsOf = async (snapshot: StoreSnapshot, where: DatalogQuery['where']): Promise<readonly string[]> => {
  const rows = await snapshot.rows({ find: [e], where: where ?? [] }, [], {});
  return [...new Set(rows.map(([id]) => String(id)))];
};

/** Returns every SSOT document at a basis, folded as in `show`. */
export async function allDocuments(snapshot: StoreSnapshot): Promise<readonly ObjectVersion[]> {
  const ids = await idsOf(snapshot, [triple(e, 'identity_hash')]);
  return [...(await snapshot.getMany(ids)).values()].map(({ version }) => version);
}

/** The database and the year of literal documents. */
export interface LiteralYear {
  readonly address: NodeAddress;
  readonly year: number;
  /** The whole database. Its chunks of text are valid from 1970 on and are hidden for the year. */
  readonly present: StoreSnapshot;
}

/**
 * Writes SSOT documents literally, each as one flat document with vectors as vectors, valid in one
 * year only.
 */
export async function putLiterally(
  { address, year, present }: LiteralYear,
  documents: readonly ObjectVersion[],
): Promise<void> {
  const literal = (document: ObjectVersion): EdnMap =>
    new EdnMap(Object.entries(document).flatMap(([name, value]): EdnValue[] => [kw(name), nestedValue(value)]));
  const span = [yearStart(year), yearStart(year + 1)];
  const chunks = await idsOf(present, [[e, kw('type'), new EdnSet(['chunk', 'chunks'])]]);
  const operations = [
    ...chunks.map((id) => [kw('xtdb.api/delete'), id, ...span]),
    ...documents.map((document) => [kw('xtdb.api/put'), literal(document), ...span]),
  ];
  const http = new XtdbHttp(address, { connections: 1, maxRequestBytes: 64_000_000, maxAnswerBytes: 1_000_000 });
  const client = openTestClient({}, address);
  try {
    const body = { type: 'application/edn', text: print(kwMap({ 'tx-ops': operations })) } as const;
    const answer = await http.send({
      method: 'POST',
      path: '/submit-tx',
      body,
      accept: 'application/edn',
      timeoutMs: 30_000,
    });
    await client.awaitOutcome(readReceipt(answer).txId);
  } finally {
    await Promise.all([http.close(), client.close()]);
  }
}
