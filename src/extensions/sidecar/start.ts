import { appendFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { isLayout } from '../../assembly/renderers.js';
import { dataFolder } from '../../process/data-folder.js';
import { InTheLoop, type InTheLoopOptions } from './in-the-loop.js';
import type { Beginning } from './protocol.js';
import { BesideProcess } from './sidecar-process.js';
import { TroubleFile } from './trouble-file.js';

/** Two seconds: what a user hardly notices beside a model call. */
const LIMIT_MS = 2_000;

/** What an extension works with. */
export interface Started {
  readonly beside: BesideProcess;
  readonly loop: InTheLoop;
}

/** How long a model call may wait: PALIMPSEST_LOOP_LIMIT_MS, else two seconds. */
function limitOf(env: NodeJS.ProcessEnv): number {
  const given = Number(env.PALIMPSEST_LOOP_LIMIT_MS);
  return Number.isFinite(given) && given > 0 ? given : LIMIT_MS;
}

/** Where an extension runs, and how its user is told something. */
export interface Surroundings {
  /** The built extension; the program that runs beside it lies in the same folder. */
  readonly extension: string;
  /** The Node for that program; PALIMPSEST_NODE where that is set. */
  readonly node: string;
  readonly env: NodeJS.ProcessEnv;
  readonly tell: (line: string) => void;
}

/** PALIMPSEST_LOOP_TIMES names a file that gets a line of JSON for each model call, for measurements. */
function timesOf(env: NodeJS.ProcessEnv): Pick<InTheLoopOptions, 'onPassed'> {
  const path = env.PALIMPSEST_LOOP_TIMES;
  if (path === undefined || path === '') return {};
  return { onPassed: (ms, objects) => appendFileSync(path, `${JSON.stringify({ ms, objects })}\n`) };
}

/** PALIMPSEST_LOOP_LAYOUT names the layout; one that is not known is told of, and §4.1 stays. */
function layoutOf({ env, tell }: Surroundings): Pick<Beginning, 'layout'> {
  const name = env.PALIMPSEST_LOOP_LAYOUT;
  if (name === undefined || name === '') return {};
  if (isLayout(name)) return { layout: name };
  tell(`Palimpsest: there is no layout ${JSON.stringify(name)}; the context has the layout ssot`);
  return {};
}

/** Starts the process beside a harness. */
export function startBeside(what: Beginning, surroundings: Surroundings): Started {
  const { extension, node, env, tell } = surroundings;
  const beginning = { ...what, ...layoutOf(surroundings) };
  const program = fileURLToPath(new URL('./beside.js', extension));
  const beside = new BesideProcess({ node: env.PALIMPSEST_NODE ?? node, program, env, beginning });
  beside.start();
  const loop = new InTheLoop({
    beside,
    trouble: new TroubleFile(dataFolder(env), beginning.what),
    limitMs: limitOf(env),
    tell,
    ...timesOf(env),
  });
  return { beside, loop };
}
