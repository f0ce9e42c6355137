import { join } from 'node:path';
import * as z from 'zod';

/** Schema of an archive plan, which the process that makes the archive gets as plain data. */
export const archivePlanSchema = z.object({
  java: z.object({ command: z.string(), major: z.int(), fingerprint: z.string() }),
  jars: z.array(z.string()).min(2),
  memoryConfig: z.string(),
  cacheDir: z.string(),
  key: z.string(),
});

/**
 * A plan of a packaged node's ahead-of-time cache: its place in the cache folder, and its input.
 */
export type ArchivePlan = Readonly<z.infer<typeof archivePlanSchema>>;

/** Returns the folder of an archive in the cache folder. */
export const archiveFolder = ({ cacheDir, key }: Pick<ArchivePlan, 'cacheDir' | 'key'>): string =>
  join(cacheDir, `node-${key}`);
