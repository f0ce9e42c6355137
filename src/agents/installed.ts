import { access, constants, stat } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { variable } from '../host/environment.js';
import type { Agent, Surroundings } from './agent.js';
import { runProgram } from './run-program.js';

/** An agent on this machine. */
export interface Installed {
  readonly agent: Agent;
  /** Its program; undefined if only its settings were found. */
  readonly program: string | undefined;
  readonly version: string | undefined;
}

/** An agent's first start unpacks it, which takes long on a busy machine. */
const VERSION_MS = 20_000;

const isRunnable = (path: string): Promise<boolean> =>
  Promise.all([stat(path), access(path, constants.X_OK)]).then(
    ([found]) => found.isFile(),
    () => false,
  );

/** Finds a program on the PATH by one of its names. */
export async function findProgram(
  names: readonly string[],
  { env, platform }: Surroundings,
): Promise<string | undefined> {
  const endings = platform === 'win32' ? (variable(env, 'PATHEXT') ?? '.EXE;.CMD').split(';') : [''];
  for (const name of names)
    for (const folder of (variable(env, 'PATH') ?? '').split(delimiter).filter((one) => one !== ''))
      for (const ending of endings) {
        const path = join(folder, `${name}${ending}`);
        if (await isRunnable(path)) return path;
      }
  return undefined;
}

/** Finds an agent by its program, else by its settings. Undefined if it is not on this machine. */
export async function findAgent(agent: Agent, at: Surroundings): Promise<Installed | undefined> {
  const program = await findProgram(agent.programs, at);
  if (program === undefined) {
    const traces = await Promise.all(agent.traces(at).map((path) => stat(path).then(Boolean, () => false)));
    return traces.includes(true) ? { agent, program, version: undefined } : undefined;
  }
  const { output } = await runProgram(program, ['--version'], { env: at.env, cwd: at.cwd, limitMs: VERSION_MS });
  return { agent, program, version: /\d+\.\d+(?:\.\d+)?(?:-[\w.]+)?/.exec(output)?.[0] };
}
