import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** Returns the bytes of a file, or of all files below a folder. 0 if it does not exist. */
export async function bytesBelow(path: string): Promise<number> {
  // A running database may remove files during the count.
  const found = await lstat(path).catch(() => undefined);
  if (found === undefined) return 0;
  if (!found.isDirectory()) return found.size;
  const names = await readdir(path).catch((): string[] => []);
  const sizes = await Promise.all(names.map((name) => bytesBelow(join(path, name))));
  return sizes.reduce((sum, size) => sum + size, 0);
}
