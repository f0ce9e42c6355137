import { lstat, mkdir, realpath } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { isWithin } from '../../filesystem/access/mounts.js';
import { rename } from '../../process/held-files.js';
import { replaceFile } from '../../process/owned-file.js';
import { systemCode } from '../../process/system-error.js';
import { CortexfsError } from './errors.js';
import { type GcPlan, planCollection, readPolicy } from './gc-plan.js';
import { readDirectory } from './read-directory.js';

/** Options of a collection. */
export interface GcOptions {
  /** Milliseconds since 1970. */
  readonly now: number;
  /** False for a dry run. */
  readonly apply?: boolean;
  /**
   * The archive folder. Default: the directory's name with `.archive`. It must be outside the
   * directory and on the same file system.
   */
  readonly archive?: string | undefined;
}

/** The result of a collection or a dry run. */
export interface GcOutcome extends GcPlan {
  /** The folder that now holds the files; undefined if nothing was moved. */
  readonly archived: string | undefined;
}

/** Creates a folder that only this collection uses. */
async function runFolder(archive: string, now: number): Promise<string> {
  const name = new Date(now).toISOString().replaceAll(/[:.]/g, '-');
  await mkdir(archive, { recursive: true, mode: 0o700 });
  for (let n = 1; ; n++) {
    const folder = join(archive, n === 1 ? name : `${name}-${n}`);
    try {
      await mkdir(folder, { mode: 0o700 });
      return folder;
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
    }
  }
}

/** Resolves the links on a path. The last folders of the path need not exist. */
async function placeOf(path: string): Promise<string> {
  const absolute = resolve(path);
  try {
    return await realpath(absolute);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || dirname(absolute) === absolute) throw error;
    return join(await placeOf(dirname(absolute)), basename(absolute));
  }
}

async function moved(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  try {
    await rename(from, to);
  } catch (error) {
    if (systemCode(error) !== 'EXDEV') throw error;
    throw new CortexfsError(
      'no-archive',
      `${dirname(to)} is on another file system than ${from}: name an archive on the same one (--archive)`,
    );
  }
}

/**
 * Moves derived files of a session directory into an archive, as its `context/gc.policy` allows.
 * Never moves raw history or a child agent's files. Without `apply`, only reports the plan. Deletes
 * nothing: the archive keeps each file under its path. First writes a manifest with the reasons.
 * @throws {CortexfsError} `invalid-policy`, `no-archive`, and those of `readDirectory`; nothing was
 *   changed
 */
export async function collectGarbage(
  folder: string,
  { now, apply = false, archive = `${resolve(folder)}.archive` }: GcOptions,
): Promise<GcOutcome> {
  const { files } = await readDirectory(folder);
  const policy = readPolicy(files.get('context/gc.policy') ?? '');
  const times = new Map<string, number>();
  for (const path of files.keys()) times.set(path, (await lstat(join(folder, path))).mtimeMs);
  const plan = planCollection({ files, writtenAt: (path) => times.get(path) ?? now }, policy, now);
  if (isWithin(await placeOf(archive), await realpath(folder)))
    throw new CortexfsError(
      'no-archive',
      `the archive ${archive} is inside the session directory: name another folder (--archive)`,
    );
  if (!apply || plan.collected.length === 0) return { ...plan, archived: undefined };
  const archived = await runFolder(archive, now);
  const manifest = { format: 1, directory: resolve(folder), at: new Date(now).toISOString(), files: plan.collected };
  await replaceFile(join(archived, 'manifest.json'), `${JSON.stringify(manifest, null, 2)}\n`, { flush: true });
  for (const { path } of plan.collected) await moved(join(folder, path), join(archived, path));
  return { ...plan, archived };
}
