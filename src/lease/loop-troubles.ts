import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { systemCode } from '../process/system-code.js';

const troubleSchema = z.object({
  what: z.string(),
  pid: z.int().positive(),
  session: z.string(),
  /** Model calls that went out with the harness's own prompt because ours was late or failed. */
  passedThrough: z.int().nonnegative(),
  /** The last of them, and why. */
  at: z.iso.datetime(),
  reason: z.string(),
});

/** What a harness with a context of ours in its loop had to do without it. */
export type LoopTrouble = Readonly<z.infer<typeof troubleSchema>>;

/** Where harnesses tell of it, one file per process. */
export const troublesFolder = (dataDir: string): string => join(dataDir, 'loops');

/** What harnesses told last, the latest first; also of those that ended. What cannot be read is passed over. Changes nothing. */
export async function loopTroubles(dataDir: string): Promise<readonly LoopTrouble[]> {
  const folder = troublesFolder(dataDir);
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  const read = async (name: string): Promise<readonly LoopTrouble[]> => {
    try {
      return [troubleSchema.parse(JSON.parse(await readFile(join(folder, name), 'utf8')))];
    } catch {
      // Half-made, or gone meanwhile.
      return [];
    }
  };
  return (await Promise.all(names.map(read))).flat().sort((a, b) => (a.at < b.at ? 1 : -1));
}
