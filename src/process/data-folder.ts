import { hash } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { addressesIn } from '../values/address-list.js';

/** Returns the folder, inside a data folder, that holds one folder per remote node. */
export const remoteFolders = (dataDir: string): string => join(dataDir, 'remote');

/** Sorts the addresses, because a list names the same database in any order. */
const inOrder = (nodeUrl: string): string => addressesIn(nodeUrl).sort().join(',');

/**
 * Returns the folder for a client's leases, journals and reports. They belong to one database, so
 * each remote node has its own folder.
 */
export function clientFolder(dataDir: string, nodeUrl: string | undefined): string {
  return nodeUrl === undefined ? dataDir : join(remoteFolders(dataDir), hash('sha256', inOrder(nodeUrl)).slice(0, 16));
}

/** Returns the client folders of a data folder: its own, and one for each foreign node. */
export async function clientFolders(dataDir: string): Promise<readonly string[]> {
  const remote = await readdir(remoteFolders(dataDir)).catch((): string[] => []);
  return [dataDir, ...remote.map((name) => join(remoteFolders(dataDir), name))];
}
