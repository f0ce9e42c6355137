import { randomUUID } from 'node:crypto';
import { print } from '../../src/edn/print.js';
import { type EdnValue, kw, kwMap } from '../../src/edn/values.js';
import type { NodeAddress } from '../../src/xtdb/address.js';
import { XtdbHttp } from '../../src/xtdb/http.js';
import { readReceipt, type TxReceipt } from '../../src/xtdb/transactions.js';
import { XtdbClient, type XtdbClientOptions } from '../../src/xtdb/xtdb-client.js';

/**
 * Returns the address of a socket with the suite's node behind it. With
 * PALIMPSEST_TEST_NODES=several each request may go to another node.
 */
export const atSocket = (socketPath: string): NodeAddress & { readonly kind: 'unix' } => ({
  kind: 'unix',
  socketPath,
  ...(process.env.PALIMPSEST_TEST_NODES === 'several' ? { isListed: true } : {}),
});

/** Returns the address of the suite's node. */
export const testNodeAddress = (): NodeAddress => {
  const socketPath = process.env.PALIMPSEST_TEST_SOCKET;
  if (socketPath === undefined)
    throw new Error('PALIMPSEST_TEST_SOCKET is not set: the live suite starts the node in its global setup.');
  return atSocket(socketPath);
};

/** Opens a client of the suite's node. The caller closes it. */
export const openTestClient = (options: XtdbClientOptions = {}, address = testNodeAddress()): XtdbClient =>
  new XtdbClient(address, options);

/** Returns an id prefix that no other test uses: all tests share one database. */
export const uniquePrefix = (): string => `t-${randomUUID()}:`;

/**
 * Commits an operation of XTDB that the client never makes, such as `delete` or `evict`, on the
 * shared node.
 */
export const executeForeign = (operation: ForeignOperation, ...args: readonly EdnValue[]): Promise<TxReceipt> =>
  executeForeignOn(testNodeAddress(), operation, ...args);

type ForeignOperation = 'put' | 'delete' | 'evict';

/** The same on another node. */
export async function executeForeignOn(
  address: NodeAddress,
  operation: ForeignOperation,
  ...args: readonly EdnValue[]
): Promise<TxReceipt> {
  const http = new XtdbHttp(address, {
    connections: 1,
    maxRequestBytes: 1_000_000,
    maxAnswerBytes: 1_000_000,
  });
  const client = openTestClient({}, address);
  try {
    const text = print(kwMap({ 'tx-ops': [[kw(`xtdb.api/${operation}`), ...args]] }));
    const body = { type: 'application/edn', text } as const;
    const answer = await http.send({
      method: 'POST',
      path: '/submit-tx',
      body,
      accept: 'application/edn',
      timeoutMs: 30_000,
    });
    const receipt = readReceipt(answer);
    await client.awaitOutcome(receipt.txId);
    return receipt;
  } finally {
    await Promise.all([http.close(), client.close()]);
  }
}
