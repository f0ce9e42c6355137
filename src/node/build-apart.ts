import { spawn } from 'node:child_process';
import * as z from 'zod';
import { archivePlanSchema } from './archive-plan.js';
import { NodeError, type NodeErrorCode } from './errors.js';
import { ensureInstallation, findInstallation, type Installation, type InstallOptions } from './install.js';
import { makePackagedArchive } from './packaged-archive.js';

const javaSchema = z.object({ command: z.string(), major: z.int(), fingerprint: z.string() });
const planSchema = z.object({
  java: javaSchema,
  frontDir: z.string(),
  isShared: z.boolean().optional(),
  memoryConfig: z.string(),
  cacheDir: z.string(),
});

/** A message from the process that builds: a line of progress, or the failure of the build. */
type Report = { readonly progress: string } | { readonly code: NodeErrorCode; readonly message: string };

/**
 * Runs the build that `installApart` requested, in its own process, and reports to the parent.
 * Continues if the parent ends.
 */
export async function buildForParent(plan: string): Promise<void> {
  const parsed: unknown = JSON.parse(plan);
  const archive = archivePlanSchema.safeParse(parsed);
  if (archive.success) return makePackagedArchive(archive.data);
  // Drops a report that cannot be sent, because the parent may have ended.
  const report = (message: Report): void => void process.send?.(message, undefined, undefined, () => undefined);
  const { isShared, ...parts } = planSchema.parse(parsed);
  const onProgress = (progress: string): void => report({ progress });
  try {
    await ensureInstallation({ ...parts, isShared: isShared === true, onProgress });
  } catch (error) {
    if (!(error instanceof NodeError)) throw error;
    report({ code: error.code, message: error.message });
    process.exitCode = 1;
  }
}

/**
 * Returns the installation. Builds a missing one in a detached process. The build continues if this
 * process ends or the caller stops waiting.
 * @throws {NodeError} as `ensureInstallation`
 */
export async function installApart(options: InstallOptions, cli: string): Promise<Installation> {
  const present = await findInstallation(options);
  if (present !== undefined) return present;
  const { signal, onProgress, ...plan } = options;
  const child = spawn(process.execPath, [cli, 'node', 'build', '--plan', JSON.stringify(plan)], {
    detached: true,
    windowsHide: true,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  });
  let failure: NodeError | undefined;
  child.on('message', (message) => {
    const report = message as Report;
    if ('progress' in report) onProgress?.(report.progress);
    else failure = new NodeError(report.code, report.message);
  });
  const ended = new Promise<string>((resolve, reject) => {
    const stop = (): void => {
      child.disconnect();
      child.unref();
      const message = 'Waiting for the node was cancelled by the caller. Its build continues.';
      reject(new NodeError('aborted', message, { cause: signal?.reason }));
    };
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, name) => {
      signal?.removeEventListener('abort', stop);
      resolve(name === null ? `exit code ${code}` : `signal ${name}`);
    });
    if (signal?.aborted) stop();
    else signal?.addEventListener('abort', stop, { once: true });
  });
  const how = await ended;
  if (failure !== undefined) throw failure;
  const built = await findInstallation(options);
  if (built !== undefined) return built;
  throw new NodeError(
    'build-failed',
    `The process that builds the node ended (${how}). Try again: palimpsest node start`,
  );
}
