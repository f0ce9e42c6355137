import { randomUUID } from 'node:crypto';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import type { ReportedReading } from '../../src/client/session/call-report.js';
import type { ContextClientOptions } from '../../src/client/session/client-options.js';
import { ContextClient } from '../../src/client/session/context-client.js';
import { filesystemId } from '../../src/objects/ids.js';
import { testNodeAddress } from './xtdb.js';

export const testAddress = testNodeAddress;

/**
 * Opens a client over a folder. Each has a filesystem id of its own, so that tests never share a
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

/**
 * Counts the requests of this process while `work` runs, by path without parameters, and their
 * characters. `queries` holds each text of a query once, so that a query sent again after a refusal
 * of a busy node counts once.
 */
export async function countRequests<T>(work: () => Promise<T>): Promise<{
  readonly result: T;
  readonly requests: Readonly<Record<string, number>>;
  readonly queries: ReadonlySet<string>;
  readonly sent: number;
}> {
  const requests: Record<string, number> = {};
  const queries = new Set<string>();
  let sent = 0;
  const onRequest = (message: unknown): void => {
    const { path, body } = (message as { readonly request: { readonly path: string; readonly body?: unknown } })
      .request;
    sent += typeof body === 'string' || Buffer.isBuffer(body) ? body.length : 0;
    const name = path.split('?')[0] ?? path;
    requests[name] = (requests[name] ?? 0) + 1;
    if (name === '/_xtdb/query') queries.add(String(body));
  };
  subscribe('undici:request:create', onRequest);
  try {
    return { result: await work(), requests, queries, sent };
  } finally {
    unsubscribe('undici:request:create', onRequest);
  }
}
