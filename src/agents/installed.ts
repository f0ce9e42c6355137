import { access, constants, realpath, stat } from 'node:fs/promises';
import { dirname, join, sep } from 'node:path';
import { isWithin } from '../filesystem/access/mounts.js';
import { programFiles } from '../process/program-files.js';
import type { Agent, Surroundings } from './agent.js';
import { runProgram } from './run-program.js';

/** An agent that is on this machine. */
export interface Installed {
  readonly agent: Agent;
  /** The path of its program. Undefined if only its settings were found. */
  readonly program: string | undefined;
  readonly version: string | undefined;
}

/**
 * Maximum wait for a version, in milliseconds. On its first start an agent unpacks itself, which
 * takes long on a busy machine.
 */
const VERSION_MS = 20_000;
const VERSION_CHARS = 1_000;

const isRunnable = (path: string): Promise<boolean> =>
  Promise.all([stat(path), access(path, constants.X_OK)]).then(
    ([found]) => found.isFile(),
    () => false,
  );

/**
 * Returns a path with all links resolved, and with slashes on every platform. If that fails,
 * returns the path unchanged.
 */
const realOr = (path: string): Promise<string> =>
  realpath(path).then(
    (real) => real.replaceAll(sep, '/'),
    () => path,
  );

/**
 * Returns whether a folder of the PATH belongs to the project. npm puts `node_modules/.bin` of the
 * project and of the folders above it on the PATH. A folder that contains the home folder or this
 * Node.js is not a project.
 */
async function isOfProject(folder: string, { cwd, home }: Surroundings): Promise<boolean> {
  const [real, here, ...own] = await Promise.all([realOr(folder), realOr(cwd), realOr(home), realOr(process.execPath)]);
  const above = dirname(dirname(real));
  const isOfPackage = folder.endsWith(join('node_modules', '.bin')) && isWithin(here, above);
  const project = isOfPackage ? above : here;
  return isWithin(real, project) && !own.some((path) => isWithin(path, project));
}

/**
 * Finds a program on the PATH by one of its names. Skips relative folders and those of the project:
 * a cloned project must not choose which programs Palimpsest runs.
 */
export async function findProgram(names: readonly string[], at: Surroundings): Promise<string | undefined> {
  for (const path of names.flatMap((name) => programFiles(name, at)))
    if ((await isRunnable(path)) && !(await isOfProject(dirname(path), at))) return path;
  return undefined;
}

/** Finds an agent by its program, or by its settings. Undefined if it is not on this machine. */
export async function findAgent(agent: Agent, at: Surroundings): Promise<Installed | undefined> {
  const program = await findProgram(agent.programs, at);
  if (program === undefined) {
    const traces = await Promise.all(agent.traces(at).map((path) => stat(path).then(Boolean, () => false)));
    return traces.includes(true) ? { agent, program, version: undefined } : undefined;
  }
  // Run the program outside the project, because some programs load their folder's settings at
  // every start.
  const cwd = dirname(program);
  const { output } = await runProgram(program, ['--version'], { env: at.env, cwd, limitMs: VERSION_MS });
  const head = output.slice(0, VERSION_CHARS);
  return { agent, program, version: /\d+\.\d+(?:\.\d+)?(?:-[\w.]+)?/.exec(head)?.[0] };
}
