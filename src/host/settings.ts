import { readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, posix, resolve } from 'node:path';
import { type MountSetting, parseMount } from '../filesystem/access/mounts.js';
import { fromNative } from '../filesystem/access/native-path.js';
import type { EnsureNodeOptions } from '../node/ensure-node.js';
import { NODE_PROFILES } from '../node/node-state.js';
import { PASSWORD_VARIABLE } from '../node/shared-log.js';
import { type CanonicalPath, canonicalPath, type FilesystemId, filesystemId, sessionId } from '../objects/ids.js';
import { showsShortIds } from '../session/object-reference.js';
import { DEFAULT_POLICY, type StepPolicy } from '../session/step-policy.js';
import type { ToolOptions } from '../tools/create-tools.js';
import { CodedError } from '../values/coded-error.js';
import { defined } from '../values/defined.js';
import { messageOf } from '../values/thrown.js';
import { parseNodeUrls, parseToken } from '../xtdb/address.js';
import {
  dataFolder,
  type Environment,
  MASK_SETTINGS,
  type MaskSetting,
  telemetryEnvironment,
  variable,
} from './environment.js';
import { readSharedLogSettings, type SharedLogFlags } from './shared-log-settings.js';

/**
 * Thrown for an invalid flag or environment variable. The message names it and says what is
 * accepted.
 */
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
  /**
   * The node of a data folder (`--data`, or PALIMPSEST_DATA, or `palimpsest` in the XDG data
   * folder). It is started if none runs.
   */
  readonly node: Omit<EnsureNodeOptions, 'onProgress' | 'signal'>;
  /**
   * XTDB_URL: one remote node, or several over one log, separated by commas. No node is then
   * started.
   */
  readonly nodeUrl: string | undefined;
  /**
   * Returns the bearer token of the remote nodes (XTDB_TOKEN_FILE or XTDB_TOKEN). Each call reads
   * it again, because tokens expire. Undefined if no token is set.
   */
  readonly nodeToken: (() => string) | undefined;
  /**
   * Whether to open sessions that used other folders (`--share-sessions`, or
   * PALIMPSEST_SHARE_SESSIONS=1).
   */
  readonly shareSessions: boolean;
  /** The secrets to mask before anything is recorded (`--mask`, or PALIMPSEST_MASK, or `known`). */
  readonly mask?: MaskSetting;
  /**
   * Whether to mask the tool results that agents get, too (`--mask-answers`, or
   * PALIMPSEST_MASK_ANSWERS=1).
   */
  readonly maskAnswers?: boolean;
}

/**
 * Variables that may hold a secret. A process that runs agents' commands removes them from its
 * environment once its settings are read.
 */
export const SECRET_VARIABLES = [
  'XTDB_TOKEN',
  PASSWORD_VARIABLE,
  'PALIMPSEST_LOG',
  'PALIMPSEST_DOCUMENTS',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  'OTEL_EXPORTER_OTLP_METRICS_HEADERS',
] as const;

/**
 * The settings of a process that serves agents. Its node starts with the original environment,
 * including variables that the process removes from its own.
 */
export interface ServerSettings extends Settings {
  /** The version of this program. */
  readonly version: string;
  /** Folders that agents may use. */
  readonly roots: readonly string[];
  /** The base of the agents' relative paths, as they see it. */
  readonly cwd: string;
  readonly mounts: readonly MountSetting[];
  /** The filesystem of agents' paths without a mount [§5.2]; default: this machine's. */
  readonly agentFilesystemId?: FilesystemId;
  /** The session of every call. If unset, each client names its session or gets a new one. */
  readonly session: string | undefined;
  /** The agent's own id of the session that started this server, if the agent says so. */
  readonly startedBy?: string;
  /** Whether to take over a session that another process has open. */
  readonly takeOver: boolean;
  /** The failure that acknowledged steps survive: a crash of the process, or a loss of power. */
  readonly durability: 'process' | 'power';
  readonly policy: StepPolicy;
  readonly tools: ToolOptions;
  /** OpenTelemetry's own variables (`OTEL_…`), including headers with secrets. */
  readonly telemetry: Environment;
}

/** The command-line flags that choose a database. */
export interface DatabaseFlags extends SharedLogFlags {
  readonly data?: string;
  readonly profile?: string;
  readonly shareSessions?: boolean;
  readonly mask?: MaskSetting;
  readonly maskAnswers?: boolean;
}

/** The command-line flags of a server. */
export interface ServerFlags extends DatabaseFlags {
  readonly root?: readonly string[];
  readonly mount?: readonly string[];
  readonly agentFilesystem?: string;
  readonly session?: string;
  readonly takeOver?: boolean;
  readonly durability: 'process' | 'power';
  readonly strict?: boolean;
  readonly shortIds?: boolean;
  readonly longIds?: boolean;
  readonly allowBash?: boolean;
  readonly readOnly?: boolean;
  readonly maxOutputChars?: number;
  /** Pause in seconds after which a turn ends. */
  readonly turnPause?: number;
  readonly window?: { readonly perTurn: number; readonly turns: number };
}

/** Reads a flag or variable; converts an error of `read` to a UsageError. */
function readGiven<T>(read: () => T): T {
  try {
    return read();
  } catch (cause) {
    throw new UsageError(messageOf(cause), { cause });
  }
}

/**
 * Parses the values of `--mount`. @throws {UsageError} usage – a value is not of the form
 * AGENT=CANONICAL[,FSID]
 */
export function readMounts(mounts: readonly string[] = []): readonly MountSetting[] {
  return mounts.map((mount) => readGiven(() => parseMount(mount)));
}

/** Parses values of the form OLD=NEW. `hint` ends the message about an invalid one. */
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
 * Parses the values of `--filesystem`, which map recorded filesystem ids to those here.
 * @throws {UsageError} usage – a value is not of the form OLD=NEW
 */
export function readRenamed(
  renamed: readonly string[] = [],
): readonly { readonly from: FilesystemId; readonly to: FilesystemId }[] {
  return readPairs(renamed, filesystemId, ' (--filesystem)');
}

/**
 * Parses the values of `--moved` and `--map`, which map recorded folders to their current places.
 * @throws {UsageError} usage – a value is not of the form OLD=NEW with two absolute paths
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

/**
 * Returns a function that reads the token of a remote node. @throws {UsageError} usage – no usable
 * token; the returned function throws it too
 */
function tokenReader(env: Environment): (() => string) | undefined {
  const [token, file] = [variable(env, 'XTDB_TOKEN'), variable(env, 'XTDB_TOKEN_FILE')];
  if (file === undefined)
    return token === undefined ? undefined : () => readGiven(() => parseToken(token, 'XTDB_TOKEN'));
  if (token !== undefined) throw new UsageError('XTDB_TOKEN and XTDB_TOKEN_FILE are both set. Unset one of them.');
  return () => readGiven(() => parseToken(textOf(file), `${file} (XTDB_TOKEN_FILE)`));
}

/**
 * Returns the value of PALIMPSEST_MASK. @throws {UsageError} usage – an unknown value
 */
export function maskSetting(env: Environment): MaskSetting | undefined {
  const named = variable(env, 'PALIMPSEST_MASK');
  const setting = MASK_SETTINGS.find((one) => one === named);
  if (named === undefined || setting !== undefined) return setting;
  throw new UsageError(`PALIMPSEST_MASK is ${JSON.stringify(named)}. Set it to one of: ${MASK_SETTINGS.join(', ')}.`);
}

/**
 * Returns the database that flags, environment and defaults choose; flags win.
 * @throws {UsageError} usage – an unknown profile, an invalid XTDB_URL, an unreadable or invalid
 *   token, or an invalid shared log
 */
export function readSettings(env: Environment, flags: DatabaseFlags = {}): Settings {
  const named = flags.profile ?? variable(env, 'PALIMPSEST_PROFILE');
  const profile = NODE_PROFILES.find((name) => name === named);
  if (named !== undefined && profile === undefined)
    throw new UsageError(`Unknown profile ${JSON.stringify(named)}. Choose one of: ${NODE_PROFILES.join(', ')}.`);
  const nodeUrl = variable(env, 'XTDB_URL');
  const nodeToken = nodeUrl === undefined ? undefined : tokenReader(env);
  if (nodeUrl !== undefined) readGiven(() => parseNodeUrls(nodeUrl));
  nodeToken?.();
  return {
    node: {
      dataDir: flags.data ?? dataFolder(env),
      ...readGiven(() => readSharedLogSettings(env, flags, profile)),
      cacheDir: join(variable(env, 'XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'palimpsest'),
      ...defined({
        profile,
        transport: variable(env, 'PALIMPSEST_TCP') === '1' ? ('tcp' as const) : undefined,
        runtimeDir: variable(env, 'XDG_RUNTIME_DIR'),
        javaHome: variable(env, 'JAVA_HOME'),
      }),
    },
    nodeUrl,
    nodeToken,
    shareSessions: flags.shareSessions ?? variable(env, 'PALIMPSEST_SHARE_SESSIONS') === '1',
    maskAnswers: flags.maskAnswers ?? variable(env, 'PALIMPSEST_MASK_ANSWERS') === '1',
    ...defined({ mask: flags.mask ?? maskSetting(env) }),
  };
}

/**
 * Whether acknowledged steps outlive this process. False for our own node with a memory database.
 */
export function isDurable({ node, nodeUrl }: Settings): boolean {
  return nodeUrl !== undefined || node.profile !== 'memory';
}

/** Returns the base of the agents' relative paths: the first root as they see it. */
function workingFolder(roots: readonly string[], mounts: readonly MountSetting[]): string {
  const first = fromNative(roots[0] ?? '/');
  const mount = mounts.find(
    ({ canonicalPrefix }) => first === canonicalPrefix || first.startsWith(`${canonicalPrefix}/`),
  );
  return mount === undefined ? first : posix.join(mount.agentPrefix, first.slice(mount.canonicalPrefix.length));
}

/**
 * Rejects settings with which every call would fail: an invalid root, data folder or session name.
 * @throws {UsageError} usage
 */
export function requireUsable({ roots, session, node: { dataDir } }: ServerSettings): void {
  for (const root of roots) {
    const stats = statSync(root, { throwIfNoEntry: false });
    if (stats?.isDirectory() !== true)
      throw new UsageError(
        `--root ${root}: ` + `${stats === undefined ? 'this folder does not exist' : 'it is not a folder'}.`,
      );
  }
  const data = statSync(dataDir, { throwIfNoEntry: false });
  if (data?.isDirectory() === false) throw new UsageError(`The data folder ${dataDir} (--data) is not a folder.`);
  if (session !== undefined) readGiven(() => sessionId(session));
}

/**
 * Returns the settings of a server that starts in `cwd`. @throws {UsageError} usage – an unusable
 * flag or variable
 */
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
      shortIds: showsShortIds(
        defined({ strict: flags.strict, shortIds: flags.longIds === true ? false : flags.shortIds }),
      ),
      ...defined({ maxOutputChars: flags.maxOutputChars }),
    },
  };
}
