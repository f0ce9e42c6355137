import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { hashText } from '../objects/hashes.js';
import type { SessionId } from '../objects/ids.js';
import { processIdentitySchema } from '../process/process-identity.js';
import { systemCode } from '../process/system-code.js';

const ownerSchema = processIdentitySchema.extend({
  session: z.string(),
  token: z.string().min(1),
  what: z.string(),
  since: z.iso.datetime(),
});

/** Who holds a session: one process for its whole life, what it is, and since when. */
export type LockOwner = Readonly<z.infer<typeof ownerSchema>>;

/** One generation of a session's lock. A file that cannot be read back whole has no owner: nobody can be behind it. */
export interface LockFile {
  readonly path: string;
  readonly generation: number;
  readonly owner: LockOwner | undefined;
}

const GENERATION = /^(.+)\.(\d{1,15})\.lock$/;

/** Readable and safe on every filesystem, also those that fold case; the hash keeps sessions apart that look alike. */
export function lockName(session: SessionId): string {
  const readable = session.toLowerCase().replaceAll(/[^a-z0-9-]/g, '_');
  return `${readable.slice(0, 60)}-${hashText(session).slice(0, 16)}`;
}

/** The folder of a data folder's session locks. */
export const locksFolder = (dataDir: string): string => join(dataDir, 'sessions');

/** The path of one generation of a session's lock. */
export const lockPath = (folder: string, session: SessionId, generation: number): string =>
  join(folder, `${lockName(session)}.${generation}.lock`);

async function readOwner(path: string): Promise<LockOwner | 'gone' | undefined> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return 'gone';
    throw error;
  }
  try {
    return ownerSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** The generations of a session's lock that are there, oldest first; of all sessions when none is named. */
export async function lockFiles(folder: string, session?: SessionId): Promise<readonly LockFile[]> {
  const wanted = session === undefined ? undefined : lockName(session);
  const names = await readdir(folder).catch((error: unknown) => {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  });
  const files: LockFile[] = [];
  for (const name of names) {
    const [, stem, generation] = GENERATION.exec(name) ?? [];
    if (stem === undefined || (wanted !== undefined && stem !== wanted)) continue;
    const path = join(folder, name);
    const owner = await readOwner(path);
    if (owner !== 'gone') files.push({ path, generation: Number(generation), owner });
  }
  return files.sort((a, b) => a.generation - b.generation);
}
