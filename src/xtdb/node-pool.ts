import type { Dispatcher, Pool } from 'undici';
import type { NodeAddress } from './address.js';

/** The library's way to send a request over a pool. */
export type Exchange = (this: Pool, options: Dispatcher.RequestOptions) => Promise<Dispatcher.ResponseData>;

/** What opens pools of connections to nodes, and what sends requests over them. */
export interface NodePools {
  readonly exchange: Exchange;
  /**
   * Whoever opens a pool destroys it. Nothing that is sent over it has a limit of time: that is the affair of whoever sends it. Connecting alone has one, `connectMs` (5 s where
   * it is left out), which a signal does not end.
   */
  open(address: NodeAddress, connections: number, connectMs?: number): Pool;
}

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Loads what connects to nodes: late, for a process that never asks the database; and of the library its pool alone: the rest of it (fetch, caches, mocks) takes 8 MiB and
 * most of the time.
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

/** What authorises a request at an address. */
export const authorisation = ({ token }: NodeAddress): { readonly authorization?: string } =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };
