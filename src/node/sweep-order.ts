import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';

/** The order to sweep, in a data folder. The node removes it once it is carried out. */
export const SWEEP_ORDER = join('erasures', 'sweep');

/**
 * Orders the next start of a data folder's node to rewrite its files without what was evicted. A
 * running node must be stopped for it.
 */
export async function orderSweep(dataDir: string): Promise<void> {
  const path = join(dataDir, SWEEP_ORDER);
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  await writeFile(path, '', { mode: 0o600, flush: true });
}
