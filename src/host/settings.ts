import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, posix, resolve } from 'node:path';
import { type MountSetting, parseMount } from '../filesystem/access/mounts.js';
import type { EnsureNodeOptions } from '../node/ensure-node.js';
import { NODE_PROFILES } from '../node/node-state.js';
import { PASSWORD_VARIABLE } from '../node/shared-log.js';
import { type CanonicalPath, canonicalPath, type FilesystemId, filesystemId, sessionId } from '../objects/ids.js';
import { DEFAULT_POLICY, type StepPolicy } from '../session/step-policy.js';
import type { ToolOptions } from '../tools/create-tools.js';
import { CodedError } from '../values/coded-error.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import { parseNodeUrls, parseToken } from '../xtdb/address.js';
import { dataFolder, type Environment, telemetryEnvironment, variable } from './environment.js';
import { readSharedLogSettings, type SharedLogFlags } from './shared-log-settings.js';

/** A flag or an environment variable cannot be used; the message names it and says what can. */
export class UsageError extends CodedError<'usage'> {
  override readonly name = 'UsageError';

  constructor(message: string, options?: { readonly cause?: unknown }) {
    super('usage', message, options);
  }

  override get isUsage(): boolean {
    return true;
  }
}

/** The database that a process works with. */
export interface Settings {
  /** The node of a data folder (`--data`, else PALIMPSEST_DATA, else `palimpsest` in the XDG data folder), started when there is none. */
  readonly node: Omit<EnsureNodeOptions, 'onProgress' | 'signal'>;
  /** XTDB_URL: a node that someone else runs, or several over one log with commas between them; then none is started. */
  readonly nodeUrl: string | undefined;
  /** The bearer token of that node, read anew by each call, since tokens expire (XTDB_TOKEN_FILE or XTDB_TOKEN); undefined where none is set. */
  readonly nodeToken: (() => string) | undefined;
  /** Whether sessions are opened that were worked with below other folders (`--share-sessions`, else PALIMPSEST_SHARE_SESSIONS=1). */
  readonly shareSessions: boolean;
}

/** Variables that may hold a secret: a process that runs commands of agents takes them out of its environment as soon as its settings are read. */
export const SECRET_VARIABLES = [
  'XTDB_TOKEN',
  PASSWORD_VARIABLE,
  'PALIMPSEST_LOG',
  'PALIMPSEST_DOCUMENTS',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  'OTEL_EXPORTER_OTLP_METRICS_HEADERS',
] as const;

/** What a process that serves agents does. Its node is started with the environment as it was read, whatever is taken out of the process's own. */
export interface ServerSettings extends Settings {
  /** The version of this program. */
  readonly version: string;
  /** Folders that agents may use. */
  readonly roots: readonly string[];
  /** Where relative paths of the agents start, as they see it. */
  readonly cwd: string;
  readonly mounts: readonly MountSetting[];
  /** The filesystem of the agents' paths that no mount covers [§5.2]; this machine's where absent. */
  readonly agentFilesystemId?: FilesystemId;
  /** The session of every call; otherwise each client says, or gets a new one. */
  readonly session: string | undefined;
  /** Moves a session here that another process has open. */
  readonly takeOver: boolean;
  /** What an acknowledged step survives. */
  readonly durability: 'process' | 'power';
  readonly policy: StepPolicy;
  readonly tools: ToolOptions;
  /** OpenTelemetry's own variables (`OTEL_…`), headers with their secrets among them. */
  readonly telemetry: Environment;
}

/** The flags that choose a database, as the command line has them. */
export interface DatabaseFlags extends SharedLogFlags {
  readonly data?: string;
  readonly profile?: string;
  readonly shareSessions?: boolean;
}

/** The flags of a server, as the command line has them. */
export interface ServerFlags extends DatabaseFlags {
  readonly root?: readonly string[];
  readonly mount?: readonly string[];
  readonly agentFilesystem?: string;
  readonly session?: string;
  readonly takeOver?: boolean;
  readonly durability: 'process' | 'power';
  readonly strict?: boolean;
  readonly shortIds?: boolean;
  readonly allowBash?: boolean;
  readonly readOnly?: boolean;
  readonly maxOutputChars?: number;
  /** Seconds. */
  readonly turnPause?: number;
  readonly window?: { readonly perTurn: number; readonly turns: number };
}

/** Reads a flag or variable; what `read` throws becomes a UsageError. */
function readGiven<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new UsageError(messageOf(cause), { cause });
  }
}

/** Reads the values of `--mount`. @throws {UsageError} usage – one is not of the form AGENT=CANONICAL[,FSID] */
export function readMounts(mounts: readonly string[] = []): readonly MountSetting[] {
  return mounts.map((mount) => readGiven(() => parseMount(mount)));
}

/** Reads values of the form OLD=NEW; `hint` ends the message about one that is none. */
function readPairs<T>(
  texts: readonly string[],
  make: (part: string) => T,
  hint = '',
): readonly { readonly from: T; readonly to: T }[] {
  return texts.map((text) => {
    const [from = '', to = '', ...more] = text.split('=');
    if (from === '' || to === '' || more.length > 0)
      throw new UsageError(`${JSON.stringify(text)} is not of the form OLD=NEW${hint}.`);
    return readGiven(() => ({ from: make(from), to: make(to) }));
  });
}

/**
 * Reads the values of `--filesystem`: what recorded filesystem ids are here.
 * @throws {UsageError} usage – one is not of the form OLD=NEW
 */
export function readRenamed(
  renamed: readonly string[] = [],
): readonly { readonly from: FilesystemId; readonly to: FilesystemId }[] {
  return readPairs(renamed, filesystemId, ' (--filesystem)');
}

/**
 * Reads the values of `--moved` and `--map`: where recorded folders lie now.
 * @throws {UsageError} usage – one is not of the form OLD=NEW with two absolute paths
 */
export function readMoved(
  moved: readonly string[] = [],
): readonly { readonly from: CanonicalPath; readonly to: CanonicalPath }[] {
  return readPairs(moved, canonicalPath);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new UsageError(`The file ${file} (XTDB_TOKEN_FILE) cannot be read: ${messageOf(cause)}`, { cause });
  }
}

/** How the token of a node that someone else runs is read. @throws {UsageError} usage – when it is called too, where there is no usable token */
function tokenReader(env: Environment): (() => string) | undefined {
  const [token, file] = [variable(env, 'XTDB_TOKEN'), variable(env, 'XTDB_TOKEN_FILE')];
  if (file === undefined)
    return token === undefined ? undefined : () => readGiven(() => parseToken(token, 'XTDB_TOKEN'));
  if (token !== undefined) throw new UsageError('XTDB_TOKEN and XTDB_TOKEN_FILE are both set. Unset one of them.');
  return () => readGiven(() => parseToken(textOf(file), `${file} (XTDB_TOKEN_FILE)`));
}

/**
 * The database that flags, environment and defaults choose; flags win.
 * @throws {UsageError} usage – an unknown profile, an XTDB_URL that is no address, a token that cannot be read or used, or a shared log that is none
 */
export function readSettings(env: Environment, flags: DatabaseFlags = {}): Settings {
  const named = flags.profile ?? variable(env, 'PALIMPSEST_PROFILE');
  const profile = NODE_PROFILES.find((name) => name === named);
  if (named !== undefined && profile === undefined)
    throw new UsageError(`There is no profile ${JSON.stringify(named)}. Choose one of: ${NODE_PROFILES.join(', ')}.`);
  const nodeUrl = variable(env, 'XTDB_URL');
  const nodeToken = nodeUrl === undefined ? undefined : tokenReader(env);
  if (nodeUrl !== undefined) readGiven(() => parseNodeUrls(nodeUrl));
  nodeToken?.();
  return {
    node: {
      dataDir: flags.data ?? dataFolder(env),
      ...readGiven(() => readSharedLogSettings(env, flags, profile)),
      cacheDir: join(variable(env, 'XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'palimpsest'),
      ...defined({ profile, runtimeDir: variable(env, 'XDG_RUNTIME_DIR'), javaHome: variable(env, 'JAVA_HOME') }),
    },
    nodeUrl,
    nodeToken,
    shareSessions: flags.shareSessions ?? variable(env, 'PALIMPSEST_SHARE_SESSIONS') === '1',
  };
}

/** Whether acknowledged steps outlive this process: not for a database of our own that forgets everything when it stops. */
export function isDurable({ node, nodeUrl }: Settings): boolean {
  return nodeUrl !== undefined || node.profile !== 'memory';
}

/** Where the agents' relative paths start: at the first root as they see it. */
function workingFolder(roots: readonly string[], mounts: readonly MountSetting[]): string {
  const [first = '/'] = roots;
  const mount = mounts.find(
    ({ canonicalPrefix }) => first === canonicalPrefix || first.startsWith(`${canonicalPrefix}/`),
  );
  return mount === undefined ? first : posix.join(mount.agentPrefix, first.slice(mount.canonicalPrefix.length));
}

/**
 * Refuses at the start what no call could work with: a root or data folder that is none, a name that no session can have.
 * @throws {UsageError} usage
 */
export function requireUsable({ roots, session, node: { dataDir } }: ServerSettings): void {
  for (const root of roots) {
    const stats = statSync(root, { throwIfNoEntry: false });
    if (stats?.isDirectory() !== true)
      throw new UsageError(`--root ${root}: ${stats === undefined ? 'there is no such folder' : 'it is no folder'}.`);
  }
  const data = statSync(dataDir, { throwIfNoEntry: false });
  if (data?.isDirectory() === false) throw new UsageError(`The data folder ${dataDir} (--data) is no folder.`);
  if (session !== undefined) readGiven(() => sessionId(session));
}

/** What a server of this version does when it is started in `cwd`. @throws {UsageError} usage – a flag or variable that cannot be used */
export function serverSettings(
  flags: ServerFlags,
  { env, cwd, version }: { readonly env: Environment; readonly cwd: string; readonly version: string },
): ServerSettings {
  const roots = (flags.root ?? [cwd]).map((root) => resolve(cwd, root));
  const mounts = readMounts(flags.mount);
  const { agentFilesystem } = flags;
  const agentFilesystemId = agentFilesystem === undefined ? undefined : readGiven(() => filesystemId(agentFilesystem));
  const settings = readSettings(env, flags);
  return {
    ...settings,
    node: { ...settings.node, environment: { ...env, ...settings.node.environment, XTDB_TOKEN: '' } },
    version,
    roots,
    cwd: workingFolder(roots, mounts),
    mounts,
    ...defined({ agentFilesystemId }),
    telemetry: telemetryEnvironment(env),
    session: flags.session,
    takeOver: flags.takeOver ?? false,
    durability: flags.durability,
    policy: {
      window: flags.window ?? DEFAULT_POLICY.window,
      pauseMs: flags.turnPause === undefined ? DEFAULT_POLICY.pauseMs : flags.turnPause * 1_000,
    },
    tools: {
      bash: flags.allowBash ?? false,
      readOnly: flags.readOnly ?? false,
      strict: flags.strict ?? false,
      shortIds: flags.shortIds ?? false,
      ...defined({ maxOutputChars: flags.maxOutputChars }),
    },
  };
}
