import { join } from 'node:path';
import * as z from 'zod';

/**
 * The schema of an archive plan, which is passed as plain data to the process that makes the
 * archive.
 */
export const archivePlanSchema = z.object({
  java: z.object({ command: z.string(), major: z.int(), fingerprint: z.string() }),
  jars: z.array(z.string()).min(2),
  memoryConfig: z.string(),
  cacheDir: z.string(),
  key: z.string(),
});

/**
 * A plan to make the ahead-of-time cache of a packaged node: its place in the cache folder, and its
 * input.
 */
export type ArchivePlan = Readonly<z.infer<typeof archivePlanSchema>>;

/** Returns the folder of an archive in the cache folder. */
export const archiveFolder = ({ cacheDir, key }: Pick<ArchivePlan, 'cacheDir' | 'key'>): string =>
  join(cacheDir, `node-${key}`);
