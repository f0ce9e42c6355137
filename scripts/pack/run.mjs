import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/**
 * Runs a program and returns its standard output. If it fails, throws with the program's own
 * output. `missing` says how to install a missing program.
 */
export async function run(program, args, { missing = 'Install it and put it on the PATH.', ...options } = {}) {
  try {
    const { stdout } = await promisify(execFile)(program, args, { maxBuffer: 64 * 2 ** 20, ...options });
    return stdout;
  } catch (error) {
    if (error.code === 'ENOENT') throw new Error(`Packing needs ${program}, which was not found. ${missing}`);
    const words = `${error.stdout ?? ''}${error.stderr ?? ''}`.trim().split('\n').slice(-12).join('\n');
    throw new Error(`${program} ${args.slice(0, 3).join(' ')} … failed (exit code ${error.code}):\n${words}`);
  }
}
