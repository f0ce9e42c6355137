import { homedir } from 'node:os';
import { join } from 'node:path';
import { NODE_PROFILES, type NodeProfile } from '../node/node-state.js';
import { dataFolder } from '../process/data-folder.js';
import { defined } from '../values/defined.js';
import { parseNodeUrl } from '../xtdb/address.js';
import { readGiven, UsageError } from './usage-error.js';

/** What the environment and the flags say, before anything is opened. */
export interface Settings {
  /** Data folder: `--data`, else PALIMPSEST_DATA, else `palimpsest` in the XDG data folder. */
  readonly dataDir: string;
  readonly profile: NodeProfile;
  /** Cache folder: `palimpsest` in the XDG cache folder. */
  readonly cacheDir: string;
  /** The XDG runtime folder, where there is one. */
  readonly runtimeDir: string | undefined;
  readonly javaHome: string | undefined;
  /** XTDB_URL: a node that someone else runs; then none is started. */
  readonly xtdbUrl: string | undefined;
}

/** The flags that the commands share. */
export interface SharedFlags {
  readonly data?: string;
  readonly profile?: string;
}

/** An empty variable counts as one that is not set, as the XDG rules ask. */
function variable(env: NodeJS.ProcessEnv, name: string): string | undefined {
  const value = env[name];
  return value === undefined || value === '' ? undefined : value;
}

/** Reads the profile; undefined when there is none of that name. */
export function parseProfile(text: string): NodeProfile | undefined {
  return NODE_PROFILES.find((profile) => profile === text);
}

/** Brings flags, environment and defaults together; flags win. Throws UsageError for an unknown profile and for an XTDB_URL that is no address. */
export function readSettings(env: NodeJS.ProcessEnv, flags: SharedFlags): Settings {
  const named = flags.profile ?? variable(env, 'PALIMPSEST_PROFILE') ?? 'rocksdb';
  const profile = parseProfile(named);
  if (profile === undefined)
    throw new UsageError(`There is no profile ${JSON.stringify(named)}. Choose one of: ${NODE_PROFILES.join(', ')}.`);
  const xtdbUrl = variable(env, 'XTDB_URL');
  if (xtdbUrl !== undefined) readGiven(() => parseNodeUrl(xtdbUrl));
  return {
    dataDir: flags.data ?? dataFolder(env),
    profile,
    cacheDir: join(variable(env, 'XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'palimpsest'),
    runtimeDir: variable(env, 'XDG_RUNTIME_DIR'),
    javaHome: variable(env, 'JAVA_HOME'),
    xtdbUrl,
  };
}

/** The settings as options of `ensureNode`, `undefined` ones left out. */
export function nodeOptions(settings: Settings): {
  readonly dataDir: string;
  readonly profile: NodeProfile;
  readonly cacheDir: string;
  readonly runtimeDir?: string;
  readonly javaHome?: string;
} {
  return {
    dataDir: settings.dataDir,
    profile: settings.profile,
    cacheDir: settings.cacheDir,
    ...defined({ runtimeDir: settings.runtimeDir, javaHome: settings.javaHome }),
  };
}
