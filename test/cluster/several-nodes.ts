import { mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stopNode } from '../../src/node/stop-node.js';
import { kafkaBroker } from './kafka-broker.js';
import { anyOf, nodesProxy } from './nodes-proxy.js';
import { postgresServer } from './postgres-server.js';
import { sharedLogOn, startSharedNode } from './shared-node.js';

/** Two nodes over one log, behind a proxy that chooses one of them for each request. */
export interface SeveralNodes {
  /** The proxy's address, for clients that know of several nodes. */
  readonly socketPath: string;
  readonly url: string;
  /** A folder for the clients' own data. */
  readonly dataDir: string;
  readonly counts: readonly number[];
  close(): Promise<void>;
}

/** Starts servers, nodes and the proxy. */
export async function severalNodes(layout: 'postgres' | 'kafka'): Promise<SeveralNodes> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-several-')));
  const data = ['a', 'b'].map((name) => join(folder, name));
  const passwordFile = join(folder, 'password');
  const postgres = await postgresServer(['log']);
  const kafka = layout === 'kafka' ? await kafkaBroker() : undefined;
  await writeFile(passwordFile, postgres.password);
  const removeAll = async (): Promise<void> => {
    await Promise.all(data.map((dataDir) => stopNode(dataDir)));
    await Promise.all([postgres.remove(), kafka?.remove()]);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const log = sharedLogOn({ postgres, passwordFile, kafka });
    const sockets: string[] = [];
    for (const dataDir of data) sockets.push(await startSharedNode(dataDir, log));
    const socketPath = join(folder, 'any.sock');
    const proxy = await nodesProxy(sockets, { choose: anyOf(sockets.length), socketPath });
    const close = async (): Promise<void> => {
      proxy.close();
      await removeAll();
    };
    return { socketPath, url: proxy.url, dataDir: join(folder, 'clients'), counts: proxy.counts, close };
  } catch (error) {
    await removeAll();
    throw error;
  }
}
