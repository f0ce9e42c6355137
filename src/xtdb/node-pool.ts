import type { Dispatcher, Pool } from 'undici';
import type { NodeAddress } from './address.js';

/** The library function that sends a request over a pool. */
export type Exchange = (this: Pool, options: Dispatcher.RequestOptions) => Promise<Dispatcher.ResponseData>;

/** Opens connection pools to nodes and sends requests over them. */
export interface NodePools {
  readonly exchange: Exchange;
  /**
   * Opens a pool; the caller destroys it. The pool sets no request timeout; callers do. Only
   * connecting has a timeout, `connectMs` (default 5 s), which a signal does not end.
   */
  open(address: NodeAddress, connections: number, connectMs?: number): Pool;
}

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Loads the HTTP library late, because some processes never query the database. Only its pool is
 * loaded: the rest (fetch, caches, mocks) takes 8 MiB and most of the time.
 */
export async function loadPools(): Promise<NodePools> {
  const [{ default: ConnectionPool }, { default: exchange }] = await Promise.all([
    import('undici/lib/dispatcher/pool.js'),
    import('undici/lib/api/api-request.js'),
  ]);
  const open = (address: NodeAddress, connections: number, connectMs = CONNECT_TIMEOUT_MS): Pool =>
    new ConnectionPool(address.kind === 'unix' ? 'http://localhost' : address.origin, {
      ...(address.kind === 'unix' ? { socketPath: address.socketPath } : {}),
      connections,
      pipelining: 1,
      connect: { timeout: connectMs },
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  return { exchange, open };
}

/** Returns the authorization header for an address. */
export const authorisation = ({ token }: NodeAddress): { readonly authorization?: string } =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };
