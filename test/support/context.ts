import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ReportedReading } from '../../src/client/session/call-report.js';
import type { ContextClientOptions } from '../../src/client/session/client-options.js';
import { ContextClient } from '../../src/client/session/context-client.js';
import { filesystemId } from '../../src/objects/ids.js';
import { testNodeAddress } from './xtdb.js';

export const testAddress = testNodeAddress;

/**
 * Opens a client over a folder. Each has a different filesystem id, so that tests never share a
 * file's object.
 */
export function openClient(root: string, options: Partial<ContextClientOptions> = {}): Promise<ContextClient> {
  return ContextClient.create({
    address: testAddress(),
    roots: [root],
    cwd: root,
    filesystemId: filesystemId(`fs-${randomUUID()}`),
    ...options,
  });
}

/** Reads a file like a whole read. */
export async function wholeRead(client: ContextClient, path: string): Promise<ReportedReading> {
  const { source } = await client.files.locate(path);
  return { source, reading: await client.files.read(source), activate: true };
}

/** Mentions existing files, like a listing. */
export async function mentions(client: ContextClient, paths: readonly string[]) {
  return Promise.all(
    paths.map(async (path) => ({ source: (await client.files.locate(path)).source, mtimeMs: 1_700_000_000_000 })),
  );
}

interface CreatedRequest {
  readonly path: string;
  readonly body?: unknown;
}

/**
 * Counts the requests of this process while `work` runs, by path without parameters, and their
 * characters. A request that a busy node refuses is sent again; it counts once. `queries` holds
 * each text of a query once.
 */
export async function countRequests<T>(work: () => Promise<T>): Promise<{
  readonly result: T;
  readonly requests: Readonly<Record<string, number>>;
  readonly queries: ReadonlySet<string>;
  readonly sent: number;
}> {
  const requests: Record<string, number> = {};
  const queries = new Set<string>();
  const counted = new Set<CreatedRequest>();
  let sent = 0;
  const add = ({ path, body }: CreatedRequest, by: 1 | -1): void => {
    sent += by * (typeof body === 'string' || Buffer.isBuffer(body) ? body.length : 0);
    const name = path.split('?')[0] ?? path;
    const count = (requests[name] ?? 0) + by;
    if (count === 0) delete requests[name];
    else requests[name] = count;
    if (name === '/_xtdb/query') queries.add(String(body));
  };
  const onRequest = (message: unknown): void => {
    const { request } = message as { readonly request: CreatedRequest };
    counted.add(request);
    add(request, 1);
  };
  const onAnswer = (message: unknown): void => {
    const { request, response } = message as {
      readonly request: CreatedRequest;
      readonly response: { readonly statusCode: number };
    };
    if (response.statusCode === 503 && counted.delete(request)) add(request, -1);
  };
  subscribe('undici:request:create', onRequest);
  subscribe('undici:request:headers', onAnswer);
  try {
    return { result: await work(), requests, queries, sent };
  } finally {
    unsubscribe('undici:request:create', onRequest);
    unsubscribe('undici:request:headers', onAnswer);
  }
}
