import { join } from 'node:path';
import { bytesBelow } from '../src/process/bytes-below.js';

/**
 * Returns the bytes of a data folder's two stores. A node with a shared log has no golden store.
 */
export async function storeBytes(
  dataDir: string,
): Promise<{ readonly golden: number; readonly index: number; readonly total: number }> {
  const [golden, index] = await Promise.all([bytesBelow(join(dataDir, 'golden')), bytesBelow(join(dataDir, 'index'))]);
  return { golden, index, total: golden + index };
}
