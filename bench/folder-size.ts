import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { unlessMissing } from '../src/process/system-error.js';

/** Returns the bytes of all files below a folder. 0 if there is no such folder. */
async function folderBytes(folder: string): Promise<number> {
  const names = (await unlessMissing(readdir(folder, { recursive: true }))) ?? [];
  // The database removes files while it works.
  const sizes = await Promise.all(
    names.map((name) =>
      stat(join(folder, name)).then(
        (file) => (file.isFile() ? file.size : 0),
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/**
 * Returns the bytes of a data folder's two stores. A node with a shared log has no golden store.
 */
export async function storeBytes(
  dataDir: string,
): Promise<{ readonly golden: number; readonly index: number; readonly total: number }> {
  const [golden, index] = await Promise.all([
    folderBytes(join(dataDir, 'golden')),
    folderBytes(join(dataDir, 'index')),
  ]);
  return { golden, index, total: golden + index };
}
