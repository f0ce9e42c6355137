import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const run = (command: string, ...args: readonly string[]): unknown => execFileSync(command, args, { stdio: 'ignore' });

/** Mounts an empty filesystem of a size (`512k`) over a folder. */
export const mountSmall = (folder: string, size: string): unknown => run('mount', '-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder);

/** Takes it away again, whoever still has a file of it open. */
export const unmount = (folder: string): unknown => run('umount', '--lazy', folder);

/** Whether this machine lets a test mount something; tried out in a folder that is gone afterwards. */
export function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), 'palimpsest-probe-'));
  try {
    mountSmall(folder, '64k');
    unmount(folder);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
