import { existsSync } from 'node:fs';
import { mkdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The folder of a data folder that holds plans and orders to erase. */
export const ERASURES = 'erasures';

/** The order that was recorded and is not finished, in a data folder. */
export const PENDING_ORDER = join(ERASURES, 'pending.json');

/** The lock of the process that plans or carries out an order, in a data folder. */
export const ERASURE_LOCK = join(ERASURES, 'lock');

/** The order to sweep, in a data folder. The node removes it once it is carried out. */
export const SWEEP_ORDER = join(ERASURES, 'sweep');

/**
 * Orders the next start of a data folder's node to rewrite its files without what was evicted. A
 * running node must be stopped for it.
 */
export async function orderSweep(dataDir: string): Promise<void> {
  const path = join(dataDir, SWEEP_ORDER);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, '', { mode: 0o600, flush: true });
}

/**
 * Returns a function that says whether an erasure of a data folder may have removed documents since
 * its last call. A plan counts too, because both change one folder. Undefined without a folder.
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
