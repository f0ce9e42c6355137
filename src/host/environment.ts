import { homedir } from 'node:os';
import { join } from 'node:path';

/** Values of `--mask`: the secrets to mask before anything is recorded. */
export const MASK_SETTINGS = ['off', 'known', 'strict'] as const;
/** A value of `--mask`. */
export type MaskSetting = (typeof MASK_SETTINGS)[number];

/** The environment of a process. Only entry points read it from the process and pass it on. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Returns the value of a variable. An empty value counts as unset, as the XDG rules ask. */
export function variable(env: Environment, name: string): string | undefined {
  return env[name] === '' ? undefined : env[name];
}

/** The variable with the address at which a gateway accepts the calls of a steered model. */
export const STEER_VARIABLE = 'PALIMPSEST_STEER';

/** The variable in which Claude Code names its session to the servers that it starts. */
export const CLAUDE_SESSION_VARIABLE = 'CLAUDE_CODE_SESSION_ID';

/** Returns OpenTelemetry's own variables. */
export function telemetryEnvironment(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('OTEL_')));
}

/**
 * Returns the data folder of an environment: PALIMPSEST_DATA, or `palimpsest` in the XDG data
 * folder. On Windows that is %LOCALAPPDATA%, which only its user can read.
 */
export function dataFolder(
  env: Environment,
  { home, platform }: { readonly home: string; readonly platform: NodeJS.Platform } = {
    home: homedir(),
    platform: process.platform,
  },
): string {
  const usual =
    platform === 'win32'
      ? (variable(env, 'LOCALAPPDATA') ?? join(home, 'AppData', 'Local'))
      : join(home, '.local', 'share');
  return variable(env, 'PALIMPSEST_DATA') ?? join(variable(env, 'XDG_DATA_HOME') ?? usual, 'palimpsest');
}

/** Settings of an extension in a harness's loop. */
export interface LoopSettings {
  readonly dataDir: string;
  /**
   * PALIMPSEST_NODE: the Node.js that the sidecar runs in; by default the extension chooses one.
   */
  readonly node: string | undefined;
  /** PALIMPSEST_LOOP_LIMIT_MS: maximum wait of a model call, milliseconds; default two seconds. */
  readonly limitMs: number;
  /** PALIMPSEST_LOOP_LAYOUT: the layout of contexts. */
  readonly layout: string | undefined;
  /** PALIMPSEST_LOOP_RETENTION, `use` or `window`: which objects stay active. */
  readonly retention: string | undefined;
  /**
   * PALIMPSEST_LOOP_STRICT and PALIMPSEST_LOOP_SHORT_IDS, 1 or 0: how contexts are shown, unless a
   * session overrides it.
   */
  readonly strict: string | undefined;
  readonly shortIds: string | undefined;
  /**
   * PALIMPSEST_LOOP_TIMES: a file that receives a line of JSON per model call, for measurements.
   */
  readonly timesFile: string | undefined;
}

/** Default of `limitMs`. Beside a model call, users hardly notice two seconds. */
const LIMIT_MS = 2_000;

/** Reads an extension's settings from its environment. */
export function loopSettings(env: Environment): LoopSettings {
  const limitMs = Number(env.PALIMPSEST_LOOP_LIMIT_MS);
  return {
    dataDir: dataFolder(env),
    node: env.PALIMPSEST_NODE,
    limitMs: Number.isFinite(limitMs) && limitMs > 0 ? limitMs : LIMIT_MS,
    layout: variable(env, 'PALIMPSEST_LOOP_LAYOUT'),
    retention: variable(env, 'PALIMPSEST_LOOP_RETENTION'),
    strict: variable(env, 'PALIMPSEST_LOOP_STRICT'),
    shortIds: variable(env, 'PALIMPSEST_LOOP_SHORT_IDS'),
    timesFile: variable(env, 'PALIMPSEST_LOOP_TIMES'),
  };
}
