import { join } from 'node:path';
import * as z from 'zod';

/** Plain data that travels to the process that makes an archive. */
export const archivePlanSchema = z.object({
  java: z.object({ command: z.string(), major: z.int(), fingerprint: z.string() }),
  jars: z.array(z.string()).min(2),
  memoryConfig: z.string(),
  cacheDir: z.string(),
  key: z.string(),
});

/** The ahead-of-time cache of a packaged node: its place in the cache folder, and its making. */
export type ArchivePlan = Readonly<z.infer<typeof archivePlanSchema>>;

/** Returns the folder of an archive in the cache folder. */
export const archiveFolder = ({ cacheDir, key }: Pick<ArchivePlan, 'cacheDir' | 'key'>): string =>
  join(cacheDir, `node-${key}`);
