import { execFile } from 'node:child_process';
import { mkdtemp, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

const PLATFORMS = {
  'linux-x64': 'linux-amd64',
  'linux-arm64': 'linux-arm64v8',
  'darwin-x64': 'darwin-amd64',
  'darwin-arm64': 'darwin-arm64v8',
};

/**
 * Copies the jars of a `pom.xml` into a folder, through the user's Maven repository. Returns their
 * paths.
 */
export async function copyJars(pom, { name, properties = [] }) {
  const dir = await mkdtemp(join(tmpdir(), `palimpsest-${name}-`));
  const platform = PLATFORMS[`${process.platform}-${process.arch}`] ?? 'linux-amd64';
  const goal = ['dependency:copy-dependencies', `-DoutputDirectory=${dir}`, `-Dpostgres.platform=${platform}`];
  await run('mvn', ['-q', '-B', '-f', pom, ...goal, ...properties]);
  return { dir, paths: (await readdir(dir)).map((file) => join(dir, file)) };
}
