import { homedir } from 'node:os';
import { join } from 'node:path';

/** The environment of a process; an entry passes it on, nothing below reads it. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The value of a variable; an empty one counts as not set, as the XDG rules ask. */
export function variable(env: Environment, name: string): string | undefined {
  return env[name] === '' ? undefined : env[name];
}

/** What an environment says in OpenTelemetry's own variables. */
export function telemetryEnvironment(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => name.startsWith('OTEL_')));
}

/** The data folder that an environment names: PALIMPSEST_DATA, else `palimpsest` in the XDG data folder. */
export function dataFolder(env: Environment): string {
  return (
    variable(env, 'PALIMPSEST_DATA') ??
    join(variable(env, 'XDG_DATA_HOME') ?? join(homedir(), '.local', 'share'), 'palimpsest')
  );
}

/** How an extension works in a harness's loop. */
export interface LoopSettings {
  readonly dataDir: string;
  /** PALIMPSEST_NODE: the Node that the sidecar runs in; the extension chooses one where absent. */
  readonly node: string | undefined;
  /** PALIMPSEST_LOOP_LIMIT_MS: how long a model call may wait, milliseconds; two seconds where absent. */
  readonly limitMs: number;
  /** PALIMPSEST_LOOP_LAYOUT: the name of the layout of contexts. */
  readonly layout: string | undefined;
  /** PALIMPSEST_LOOP_RETENTION, `use` or `window`: which objects stay active. */
  readonly retention: string | undefined;
  /** PALIMPSEST_LOOP_STRICT and PALIMPSEST_LOOP_SHORT_IDS, 1 or 0: how contexts are shown until a session says otherwise. */
  readonly strict: string | undefined;
  readonly shortIds: string | undefined;
  /** PALIMPSEST_LOOP_TIMES: a file that gets a line of JSON for each model call, for measurements. */
  readonly timesFile: string | undefined;
}

/** Two seconds: a user hardly notices them next to a model call. */
const LIMIT_MS = 2_000;

/** Reads how an extension works from its environment. */
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
