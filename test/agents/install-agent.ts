import { execFile } from 'node:child_process';
import { access, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * The program of an agent's npm package, installed on first use into the user's cache folder: these packages take hundreds of megabytes and are
 * no dependencies of the project.
 */
export async function installedAgent(name: string, version: string, program: string): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'palimpsest', 'agents');
  const folder = join(cache, `${name.replace(/[^a-z0-9-]+/g, '-').replace(/^-/, '')}-${version}`);
  const binary = join(folder, 'node_modules', '.bin', program);
  if (
    await access(binary).then(
      () => true,
      () => false,
    )
  )
    return binary;
  const making = `${folder}.${process.pid}`;
  await mkdir(making, { recursive: true });
  await writeFile(join(making, 'package.json'), '{"private":true}\n');
  await run('npm', ['install', '--no-audit', '--no-fund', `${name}@${version}`], { cwd: making, maxBuffer: 16 * 1024 * 1024 });
  await rename(making, folder).catch(() => rm(making, { recursive: true, force: true }));
  return binary;
}
