import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NodeAddress } from '../../../src/xtdb/address.js';

/** An HTTP server with deliberate faults, on a separate unix socket. */
export interface EdgeServer {
  readonly address: NodeAddress;
  close(): Promise<void>;
}

/**
 * Opens an HTTP server that answers like `listener`. It simulates a broken connection to the
 * database, never the database.
 */
export const openEdgeServer = async (listener: RequestListener): Promise<EdgeServer> => {
  const folder = await mkdtemp(join(tmpdir(), 'edge-'));
  const socketPath = join(folder, 's');
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return {
    address: { kind: 'unix', socketPath },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      await rm(folder, { recursive: true, force: true });
    },
  };
};
