import { existsSync } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The folder with plans and orders of erasures, in a data folder. */
export const ERASURES = 'erasures';

/** The file with a recorded order that is not finished, in a data folder. */
export const PENDING_ORDER = join(ERASURES, 'pending.json');

/** The lock of the process that plans or carries out an order, in a data folder. */
export const ERASURE_LOCK = join(ERASURES, 'lock');

/** The file that orders a sweep, in a data folder. The node removes it after the sweep. */
export const SWEEP_ORDER = join(ERASURES, 'sweep');

/**
 * Orders a sweep: at its next start, the data folder's node rewrites its files without evicted
 * documents. A running node must be stopped for that.
 */
export async function orderSweep(dataDir: string): Promise<void> {
  const path = join(dataDir, SWEEP_ORDER);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, '', { mode: 0o600, flush: true });
}

/**
 * Returns a function that checks whether an erasure may have removed documents since the function's
 * last call. A new plan counts too, because plans and orders change the same folder. Undefined
 * without a data folder.
 */
export function erasureSign(dataDir: string | undefined): (() => Promise<boolean>) | undefined {
  if (dataDir === undefined) return undefined;
  let last: string | undefined;
  return async () => {
    const found = await stat(join(dataDir, ERASURES)).catch(() => undefined);
    const state = found === undefined ? '' : `${found.ino} ${found.mtimeMs}`;
    const isChanged = last !== undefined && state !== last;
    last = state;
    return isChanged || (found !== undefined && existsSync(join(dataDir, PENDING_ORDER)));
  };
}
