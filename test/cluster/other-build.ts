import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { DATA_FORMAT } from '../../src/node/data-folder.js';

const run = promisify(execFile);
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const PARTS = ['src', 'scripts', 'xtdb', 'package.json', 'tsconfig.json'];

/** The program of another version, built in a separate folder. */
export interface OtherBuild {
  /** Its command line program. */
  readonly program: string;
  remove(): Promise<void>;
}

/** Whether this clone has a commit. A clone without history may lack it. */
export function hasCommit(commit: string): Promise<boolean> {
  return run('git', ['cat-file', '-e', `${commit}^{commit}`], { cwd: root }).then(
    () => true,
    () => false,
  );
}

async function built(fill: (dir: string) => Promise<unknown>): Promise<OtherBuild> {
  const dir = await realpath(await mkdtemp(join(tmpdir(), 'palimpsest-version-')));
  const remove = (): Promise<void> => rm(dir, { recursive: true, force: true });
  try {
    await fill(dir);
    await symlink(join(root, 'node_modules'), join(dir, 'node_modules'));
    await run(process.execPath, [join(dir, 'scripts', 'build.mjs')], { cwd: dir });
    return { program: join(dir, 'dist', 'cli.js'), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Builds the program as it was at a commit. */
export function buildOfCommit(commit: string): Promise<OtherBuild> {
  return built((dir) => run('sh', ['-c', 'git archive "$1" | tar x -C "$2"', 'sh', commit, dir], { cwd: root }));
}

/** Builds this program with another data format number. */
export function buildOfFormat(format: number): Promise<OtherBuild> {
  return built(async (dir) => {
    await Promise.all(PARTS.map((part) => cp(join(root, part), join(dir, part), { recursive: true })));
    const file = join(dir, 'src', 'node', 'data-folder.ts');
    const text = await readFile(file, 'utf8');
    const line = `export const DATA_FORMAT = ${DATA_FORMAT};`;
    if (!text.includes(line)) throw new Error(`${file} has no line ${line}`);
    await writeFile(file, text.replace(line, `export const DATA_FORMAT = ${format};`));
  });
}
