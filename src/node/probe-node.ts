import * as z from 'zod';
import { parseJson } from '../process/owned-file.js';
import { authorisation, openPool } from '../xtdb/node-pool.js';
import type { OwnNodeAddress } from './node-state.js';

/** The status that a node reports. */
export interface ProbeAnswer {
  readonly version: string | undefined;
  /**
   * True if its indexer has stopped. The node still answers queries, from stale data, and accepts
   * no more writes.
   */
  readonly ingesterFailed: boolean;
  /**
   * Why the indexer has stopped, as one line. Null while it runs, or if the node gives no reason.
   */
  readonly ingesterError: string | null;
  /** True if its store has refused a write. The node accepts no more writes until its restart. */
  readonly storeFailed: boolean;
  /** The state of its shared log; undefined if it shares none. */
  readonly log: LogHealth | undefined;
}

/**
 * The relation of a node to its shared log. Transactions are counted in steps of the log, which may
 * skip numbers.
 */
export interface LogHealth {
  /** The log's own name, generated when it was created. */
  readonly name: string;
  /** The format of its content; null if the node does not report it. */
  readonly format: number | null;
  /** Whether it answered the node's last check, some seconds ago. */
  readonly reachable: boolean;
  /** The last transaction seen in the log; null if there is none. */
  readonly submitted: number | null;
  /** The last transaction in the node's index. */
  readonly completed: number | null;
}

const logSchema = z
  .object({
    name: z.string(),
    format: z.int().nullish(),
    'reachable?': z.boolean(),
    submitted: z.number().nullish(),
    completed: z.number().nullish(),
  })
  .transform((said) => ({
    name: said.name,
    format: said.format ?? null,
    reachable: said['reachable?'],
    submitted: said.submitted ?? null,
    completed: said.completed ?? null,
  }));

const statusSchema = z
  .looseObject({
    version: z.string().optional(),
    'ingesterFailed?': z.boolean().nullish(),
    ingesterFailed: z.boolean().nullish(),
    ingesterError: z.string().nullish(),
    'storeFailed?': z.boolean().nullish(),
    log: logSchema.optional(),
  })
  .transform(({ version, ...said }) => ({
    version,
    ingesterFailed: (said['ingesterFailed?'] ?? said.ingesterFailed) === true,
    ingesterError: said.ingesterError ?? null,
    storeFailed: said['storeFailed?'] === true,
    log: said.log,
  }));

/** Parses the body of `/_xtdb/status` as JSON; undefined if it is invalid. */
export function parseStatus(body: string): ProbeAnswer | undefined {
  return parseJson(body, statusSchema);
}

/** A node's answer to one request. */
interface NodeAnswer {
  readonly status: number;
  readonly body: string;
}

/**
 * Sends a node one JSON request over its own connection; undefined if it does not answer within the
 * limit.
 */
export async function askNode(
  address: OwnNodeAddress,
  { limitMs, ...asked }: { readonly method: 'GET' | 'POST'; readonly path: string; readonly limitMs: number },
): Promise<NodeAnswer | undefined> {
  const pool = await openPool(address, 1, limitMs);
  const headers = { accept: 'application/json', ...authorisation(address) };
  try {
    const { statusCode, body } = await pool.request({ ...asked, headers, signal: AbortSignal.timeout(limitMs) });
    return { status: statusCode, body: await body.text() };
  } catch {
    return undefined;
  } finally {
    await pool.destroy();
  }
}

/** Requests a node's status; undefined without a valid answer within the limit. */
export async function probeNode(address: OwnNodeAddress, limitMs: number): Promise<ProbeAnswer | undefined> {
  const answer = await askNode(address, { method: 'GET', path: '/_xtdb/status', limitMs });
  return answer?.status === 200 ? parseStatus(answer.body) : undefined;
}
