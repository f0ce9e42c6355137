import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { run } from './run.mjs';

/** Runs npm. On Windows, npm is a shell script. */
export const npm = (args, options) =>
  run(process.platform === 'win32' ? 'npm.cmd' : 'npm', args, { shell: process.platform === 'win32', ...options });

/**
 * Packs a folder with npm. Returns the tarball's path and sizes. Throws if npm leaves out a file.
 */
export async function packFolder(folder, out) {
  await mkdir(out, { recursive: true });
  const [packed] = JSON.parse(await npm(['pack', folder, '--ignore-scripts', '--json', '--pack-destination', out]));
  const within = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = within.filter((entry) => entry.isFile()).length;
  if (packed.files.length !== files)
    throw new Error(`npm packed ${packed.files.length} of the ${files} files in ${folder}.`);
  const path = resolve(out, packed.filename);
  return { path, bytes: (await stat(path)).size, unpacked: packed.unpackedSize };
}

/** Unpacks an npm tarball and returns the folder of its content, without the folder `package`. */
export async function unpack(tarball, to) {
  await rm(to, { recursive: true, force: true });
  await mkdir(to, { recursive: true });
  await run('tar', ['-xzf', tarball, '-C', to, '--strip-components=1']);
  return to;
}

/** Fetches a published package at a version with the integrity of our lock file, and unpacks it. */
export async function fetchPackage(name, { version, integrity }, to) {
  const fetched = await npm(['pack', `${name}@${version}`, '--ignore-scripts', '--json', '--pack-destination', to]);
  const [packed] = JSON.parse(fetched);
  if (packed.integrity !== integrity)
    throw new Error(`${name}@${version} has the integrity ${packed.integrity}, and the lock file says ${integrity}.`);
  return unpack(join(to, packed.filename), join(to, 'package'));
}
