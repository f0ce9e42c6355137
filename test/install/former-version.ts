import { execFile } from 'node:child_process';
import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');

/** The program as it was at a commit, with the packages of that time. */
export interface FormerVersion {
  /** Its command line program. */
  readonly program: string;
  remove(): Promise<void>;
}

/** Builds the program of a commit. It installs that commit's own packages from the registry. */
export async function formerVersion(commit: string): Promise<FormerVersion> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-former-')));
  const remove = (): Promise<void> => rm(dir, { recursive: true, force: true });
  try {
    await run('sh', ['-c', 'git archive "$1" | tar x -C "$2"', 'sh', commit, dir], { cwd: root });
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], { cwd: dir, maxBuffer: 16 * 2 ** 20 });
    await run(process.execPath, ['scripts/build.mjs'], { cwd: dir });
    return { program: join(dir, 'dist', 'cli.js'), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}
