import { hash } from 'node:crypto';
import { homedir } from 'node:os';
import { join } from 'node:path';

type Environment = Readonly<Record<string, string | undefined>>;

/** An empty variable counts as one that is not set, as the XDG rules ask. */
const variable = (env: Environment, name: string): string | undefined => (env[name] === '' ? undefined : env[name]);

/** The data folder that an environment names: PALIMPSEST_DATA, else `palimpsest` in the XDG data folder. */
export function dataFolder(env: Environment): string {
  return variable(env, 'PALIMPSEST_DATA') ?? join(variable(env, 'XDG_DATA_HOME') ?? join(homedir(), '.local', 'share'), 'palimpsest');
}

/** Below a data folder: a folder for each node that someone else runs. */
export const remoteFolders = (dataDir: string): string => join(dataDir, 'remote');

/** Where leases, journals and reports of a client lie: they belong to one database, so those of a node that someone else runs have a folder of their own. */
export function clientFolder(dataDir: string, nodeUrl: string | undefined): string {
  return nodeUrl === undefined ? dataDir : join(remoteFolders(dataDir), hash('sha256', nodeUrl).slice(0, 16));
}
