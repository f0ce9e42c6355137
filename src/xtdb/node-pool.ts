import type { Pool } from 'undici';
import type { NodeAddress } from './address.js';

const CONNECT_TIMEOUT_MS = 5_000;

/**
 * Opens a pool of connections to a node, which the caller destroys. The pool sets no request
 * timeout; callers do. Only connecting has a timeout, `connectMs`, and no signal ends that wait.
 * Loads the HTTP library on first use, because some processes never query the database.
 */
export async function openPool(
  address: NodeAddress,
  connections: number,
  connectMs = CONNECT_TIMEOUT_MS,
): Promise<Pool> {
  // In a bundle, a CommonJS package has only a default export.
  const { default: undici } = await import('undici');
  return new undici.Pool(address.kind === 'unix' ? 'http://localhost' : address.origin, {
    ...(address.kind === 'unix' ? { socketPath: address.socketPath } : {}),
    connections,
    pipelining: 1,
    // No keep-alive on TCP to this machine: the system itself reports the end of a node, and Wine
    // does not support it.
    connect: { timeout: connectMs, keepAlive: address.kind !== 'tcp' },
    headersTimeout: 0,
    bodyTimeout: 0,
  });
}

/** Returns the authorization header for an address. */
export const authorisation = ({ token }: NodeAddress): { readonly authorization?: string } =>
  token === undefined ? {} : { authorization: `Bearer ${token}` };
