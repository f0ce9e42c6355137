import { hash } from 'node:crypto';
import { join } from 'node:path';
import { addressesIn } from '../values/address-list.js';

/** Below a data folder: a folder for each node that someone else runs. */
export const remoteFolders = (dataDir: string): string => join(dataDir, 'remote');

/** A list of addresses names the same database in whatever order. */
const inOrder = (nodeUrl: string): string => addressesIn(nodeUrl).sort().join(',');

/** Where leases, journals and reports of a client lie: they belong to one database, so those of a node that someone else runs have a folder of their own. */
export function clientFolder(dataDir: string, nodeUrl: string | undefined): string {
  return nodeUrl === undefined ? dataDir : join(remoteFolders(dataDir), hash('sha256', inOrder(nodeUrl)).slice(0, 16));
}
