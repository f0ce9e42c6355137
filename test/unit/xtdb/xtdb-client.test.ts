import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from '@jest/globals';
import type { XtdbErrorDetails } from '../../../src/xtdb/errors.js';
import { XtdbClient } from '../../../src/xtdb/xtdb-client.js';
import { openEdgeServer } from './edge-server.js';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const RECEIPT = '{:xtdb.api/tx-id 7, :xtdb.api/tx-time #inst "2024-01-01T00:00:00.001-00:00"}';

/**
 * A client whose requests are answered by path with a status and an EDN body. Other paths get no
 * answer.
 */
const clientOf = async (
  answers: Readonly<Record<string, readonly [number, string]>>,
): Promise<{ readonly client: XtdbClient; readonly seen: string[] }> => {
  const seen: string[] = [];
  const server = await openEdgeServer((request: IncomingMessage, response: ServerResponse) => {
    const path = (request.url ?? '').replace(/\?.*/, '').replace('/_xtdb/', '');
    seen.push(path);
    const answer = answers[path];
    if (answer !== undefined) response.writeHead(answer[0], { 'content-type': 'application/edn' }).end(answer[1]);
  });
  const client = new XtdbClient(server.address);
  closers.push(server.close, () => client.close());
  return { client, seen };
};

const put = [{ op: 'put', doc: { 'xt/id': 'a' } }] as const;

const unknownOf7: XtdbErrorDetails = { outcomeUnknown: true, txId: 7 };

describe('the outcome of a submission', () => {
  test('is unknown if it did not arrive in time, and names its transaction', async () => {
    const { client } = await clientOf({
      'submit-tx': [202, RECEIPT],
      'tx-committed': [500, '{:type "exception", :class "java.util.concurrent.TimeoutException"}'],
    });
    await expect(client.execute(put, { timeoutMs: 2_000 })).rejects.toMatchObject({ code: 'timeout', ...unknownOf7 });
  });

  test('reports a node that stopped indexing instead of a timeout', async () => {
    const { client, seen } = await clientOf({
      'submit-tx': [202, RECEIPT],
      'tx-committed': [500, '{:type "exception", :class "java.lang.Exception"}'],
      status: [200, '{:xtdb.version/version "1.24.3", :ingester-failed? true}'],
    });
    await expect(client.execute(put)).rejects.toMatchObject({ code: 'ingester-failed', ...unknownOf7 });
    expect(seen).toEqual(['submit-tx', 'tx-committed', 'status']);
  });

  test('shows a failed indexer in a status of 200 as well', async () => {
    const { client } = await clientOf({ status: [200, '{:ingester-failed? true}'] });
    expect((await client.status()).ingesterFailed).toBe(true);
  });

  test('stays a server error with a living indexer', async () => {
    const { client } = await clientOf({
      'tx-committed': [500, '{:type "exception", :class "java.lang.Exception"}'],
      status: [200, '{:ingester-failed? false}'],
    });
    await expect(client.awaitOutcome(7)).rejects.toMatchObject({ code: 'server-error', outcomeUnknown: false });
  });
});

describe('complete but unexpected answers', () => {
  test.each([
    ['submit-tx', (client: XtdbClient) => client.submit(put)],
    ['tx-committed', (client: XtdbClient) => client.awaitOutcome(7)],
    ['db', (client: XtdbClient) => client.db()],
    ['status', (client: XtdbClient) => client.status()],
    ['latest-completed-tx', (client: XtdbClient) => client.latestCompletedTx()],
  ] as const)('are rejected as bad-response from %s', async (path, call) => {
    const { client } = await clientOf({ [path]: [path === 'submit-tx' ? 202 : 200, '"hello"'] });
    await expect(call(client)).rejects.toMatchObject({ code: 'bad-response' });
  });
});
