import { randomUUID } from 'node:crypto';
import type { NodeAddress } from '../../src/xtdb/address.js';
import { XtdbClient, type XtdbClientOptions } from '../../src/xtdb/xtdb-client.js';

/** Where the suite's node listens. */
export const testNodeAddress = (): NodeAddress => {
  const socketPath = process.env.PALIMPSEST_TEST_SOCKET;
  if (socketPath === undefined) throw new Error('PALIMPSEST_TEST_SOCKET is not set: the live suite starts the node in its global setup.');
  return { kind: 'unix', socketPath };
};

/** A client of the suite's node. Whoever opens it closes it. */
export const openTestClient = (options: XtdbClientOptions = {}): XtdbClient => new XtdbClient(testNodeAddress(), options);

/** A prefix for ids that no other test uses: all tests share one database. */
export const uniquePrefix = (): string => `t-${randomUUID()}:`;
