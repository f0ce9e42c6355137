import { spawn } from 'node:child_process';
import { access, mkdir, readFile, utimes } from 'node:fs/promises';
import { setPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import * as z from 'zod';
import { draftOf, removeDeadDrafts } from '../process/drafts.js';
import { withNamedLock } from '../process/lock.js';
import { replaceFile } from '../process/owned-file.js';
import { type ArchivePlan, archiveFolder } from './archive-plan.js';
import { makeArchive } from './build-front.js';
import { NodeError } from './errors.js';
import { type FrontFiles, installationKey } from './front-files.js';
import { removeOldInstallations } from './install.js';
import type { PackagedNode } from './packaged-node.js';
import { TIME_LIMITS } from './time-limits.js';

const ARCHIVE = 'front.aot';
const MANIFEST = 'installation.json';
const manifestSchema = z.object({ archive: z.boolean() });

/** Returns the plan of a packaged node's archive, which fits only the package's current place. */
export function archivePlan(
  node: PackagedNode,
  files: FrontFiles,
  { cacheDir, memoryConfig }: { readonly cacheDir: string; readonly memoryConfig: string },
): ArchivePlan {
  const { java, jars, dir } = node;
  const key = installationKey({ java: `${java.fingerprint} | ${dir}`, files });
  return { java, jars: [...jars], memoryConfig, cacheDir, key };
}

/**
 * Looks up a packaged node's archive. Returns its path, null if this machine cannot make one, or
 * undefined if no process has tried.
 */
export async function findArchive(plan: ArchivePlan): Promise<string | null | undefined> {
  const dir = archiveFolder(plan);
  try {
    const { archive } = manifestSchema.parse(JSON.parse(await readFile(join(dir, MANIFEST), 'utf8')));
    // Marks the archive as used, for the clean-up of old ones.
    await utimes(dir, new Date(), new Date()).catch(() => undefined);
    if (!archive) return null;
    await access(join(dir, ARCHIVE));
    return join(dir, ARCHIVE);
  } catch {
    return undefined;
  }
}

/** Makes the archive in this process, at the lowest priority, unless another process does. */
export async function makePackagedArchive(plan: ArchivePlan): Promise<void> {
  setPriority(19);
  await mkdir(plan.cacheDir, { recursive: true, mode: 0o700 });
  const dir = archiveFolder(plan);
  await withNamedLock(`${dir}.lock`, { limitMs: TIME_LIMITS.lockMs }, async () => {
    if ((await findArchive(plan)) !== undefined) return;
    await mkdir(dir, { recursive: true, mode: 0o700 });
    await removeDeadDrafts(tmpdir(), { isOurs: (name) => name.startsWith('palimpsest.'), recursive: true });
    const { java, jars, memoryConfig: configFile } = plan;
    // The path must be short, because a socket's path is limited.
    const workDir = await draftOf(join(tmpdir(), 'palimpsest'));
    const limitMs = TIME_LIMITS.idleArchiveMs;
    const work = { java, jars, configFile, workDir, archive: join(dir, ARCHIVE), limitMs };
    const made = await makeArchive(work, undefined).catch((error: unknown) => {
      if (!(error instanceof NodeError) || error.code !== 'build-failed') throw error;
      return false;
    });
    await replaceFile(join(dir, MANIFEST), `${JSON.stringify({ archive: made })}\n`);
    await removeOldInstallations(plan.cacheDir, plan.key);
  });
}

/** Makes the archive in a separate, detached process. Starts use it once it exists. */
export function makeArchiveApart(plan: ArchivePlan, cli: string): void {
  const child = spawn(process.execPath, [cli, 'node', 'build', '--plan', JSON.stringify(plan)], {
    detached: true,
    windowsHide: true,
    stdio: 'ignore',
  });
  // Ignored, because the node runs without an archive, too.
  child.on('error', () => undefined);
  child.unref();
}
